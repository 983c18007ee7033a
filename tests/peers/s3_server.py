"""An S3-compatible store on loopback."""

from collections.abc import Iterator

import pytest

BUCKET = "izzy-files"


@pytest.fixture(scope="module")
def s3_endpoint() -> Iterator[str]:
    """The address of a store with an empty bucket, BUCKET; the keys it takes are in the environment meanwhile."""
    import boto3
    from moto.server import ThreadedMotoServer

    with pytest.MonkeyPatch.context() as patch:
        for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY"):
            patch.setenv(name, "for-tests")
        patch.setenv("AWS_EC2_METADATA_DISABLED", "true")
        server = ThreadedMotoServer(ip_address="127.0.0.1", port=0, verbose=False)
        server.start()
        host, port = server.get_host_and_port()
        endpoint = f"http://{host}:{port}"
        boto3.client("s3", endpoint_url=endpoint, region_name="us-east-1").create_bucket(Bucket=BUCKET)
        yield endpoint
        server.stop()
