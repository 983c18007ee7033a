import json

from apps.accounts.models import User
from apps.chat.models import Message, Turn, TurnEvent
from apps.chat.runner.registry import kick, registry
from apps.chat.services import UserMessage, message_send
from apps.core.database import in_db
from tests.peers.anthropic_server import AnthropicServer, reply


async def test_smoke(alice: User, model: AnthropicServer) -> None:
    model.add(reply("Hello Alice."))
    sent = await in_db(
        lambda: message_send(user_id=alice.id, message=UserMessage(text="Hi there", client_id="c1"))
    )
    await kick(sent.conversation_id)
    await registry().idle()
    turn = await in_db(lambda: Turn.objects.unscoped().get(id=sent.turn_id))
    for e in await in_db(lambda: list(TurnEvent.objects.all())):
        print(e.seq, e.last_seq, e.type, e.payload)
    for m in await in_db(lambda: list(Message.objects.unscoped())):
        print(m.position, m.role, m.kind, m.blocks, m.seq)
    print(json.dumps(model.messages[0], indent=1)[:3000])
    assert turn.state == "done"
