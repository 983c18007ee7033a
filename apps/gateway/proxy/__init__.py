"""The Messages proxy: `/v1/…` for programs that speak Anthropic's Messages API, with memory beside the user's words."""
