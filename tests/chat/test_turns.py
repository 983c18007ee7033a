from apps.accounts.models import User
from apps.chat.models import Message, Turn
from apps.core.database import in_db
from tests.chat.client import connected
from tests.peers.anthropic_server import AnthropicServer, reply, tool


async def test_smoke(alice: User, model: AnthropicServer) -> None:
    model.add(reply("Let me think.", tool("think", {"thought": "hm"}), tool("conversation_list", {})), reply("# Hello Alice.\n\nHow **are** you?"))
    async with connected(alice) as page:
        queued = await page.say("Hi there")
        await page.ended()
        await page.until("title")
        for f in page.seen:
            print(str(f)[:200])
        print(await page.snapshot(queued["conversation"]))
        await page.send("open", conversation=queued["conversation"], seq=3)
        for _ in range(18): print(str(await page.next())[:200])
