"""The admin shows the index and keeps it whole."""

from collections.abc import Callable

from django.test import Client

from apps.accounts.models import User
from apps.search.backends import Stem, backend
from apps.search.models import EmbeddingSpace, IndexOwner, Passage

from .conftest import found, save

SignIn = Callable[[User], Client]


def test_it_lists_and_shows_passages(admin: User, alice: User, sign_in: SignIn) -> None:
    save(alice, "The car is red")
    client = sign_in(admin)
    assert b"The car is red" in client.get("/admin/search/passage/?q=car").content
    page = client.get(f"/admin/search/passage/{Passage.objects.get().pk}/change/")
    assert page.status_code == 200
    assert b"vector" not in page.content


def test_a_deleted_passage_leaves_full_text_too(admin: User, alice: User, sign_in: SignIn) -> None:
    save(alice, "The car is red", "The bicycle is blue")
    passage = Passage.objects.get(text="The car is red")
    client = sign_in(admin)
    client.post(f"/admin/search/passage/{passage.pk}/delete/", {"post": "yes"})
    assert found(alice, "car") == ["The bicycle is blue"]
    assert not len(backend.postings(IndexOwner.objects.get().number, [Stem("car")])[0])
    selected = {
        "action": "delete_selected",
        "_selected_action": [Passage.objects.get().pk],
        "post": "yes",
    }
    client.post("/admin/search/passage/", selected)
    assert found(alice, "bicycle") == []


def test_deleting_an_owner_takes_their_texts_out_of_search(
    admin: User, alice: User, sign_in: SignIn
) -> None:
    save(alice, "The car is red")
    sign_in(admin).post(
        f"/admin/search/indexowner/{IndexOwner.objects.get().pk}/delete/", {"post": "yes"}
    )
    assert found(alice, "car") == []
    assert not Passage.objects.exists()


def test_spaces_cannot_be_deleted(admin: User, alice: User, sign_in: SignIn) -> None:
    save(alice, "The car is red")
    space = EmbeddingSpace.objects.get()
    client = sign_in(admin)
    assert client.get(f"/admin/search/embeddingspace/{space.pk}/change/").status_code == 200
    assert (
        client.post(f"/admin/search/embeddingspace/{space.pk}/delete/", {"post": "yes"}).status_code
        == 403
    )


def test_the_admin_is_for_superusers_alone(alice: User, sign_in: SignIn) -> None:
    assert sign_in(alice).get("/admin/search/passage/").status_code in {302, 403, 404}
