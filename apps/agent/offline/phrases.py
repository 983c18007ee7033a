"""Texts of the offline model."""

HELP = """I am in **offline mode**: no language model is connected, so I follow simple rules. I understand, in English:

- *remember that I'm allergic to shellfish*
- *what do you know about food?* · *think hard about what I like to eat* · *list my memories*
- *actually I'm only allergic to prawns* · *change my favourite colour to green*
- *forget my allergy*
- *search our conversations for Lisbon* · *list our conversations*
- *view /memories* · *create /memories/todo.txt with Buy milk* · *replace milk with tea in /memories/todo.txt* · \
*rename /memories/todo.txt to /memories/done.txt* · *delete /memories/done.txt*
- *build me a dice roller* · *build me a unit converter* · *build me text statistics* · then *roll 3d6* · *convert 5 miles to km*
- *list capabilities* · *run dice_roller with dice 3d6*

For real conversations, set `ANTHROPIC_API_KEY` (or `ANTHROPIC_BASE_URL` for a server of your own, such as Ollama) \
and restart, or enter it on the instance page."""
GREETING = (
    "Hello! I am in offline mode and follow simple rules. Tell me something to remember, or say *help*."
)
THANKS = "You're welcome."
UNKNOWN = (
    "I did not understand that: I am in offline mode and only follow simple rules. Say *help* to see what I understand, "
    "or set `ANTHROPIC_API_KEY` to talk with a language model."
)
TOO_LONG = (
    "That message is too long for offline mode. Say it in fewer words, or connect a language model."
)
NO_MEMORY = "This conversation is one without memory, so I can neither look up nor save anything here."
NO_TOOL = "I have no tool for that in this conversation; it may be turned off in your preferences."
NOTHING_FOUND = "I found nothing about {topic} in your notes."
NOT_A_MODEL = (
    "I am in offline mode and can only answer from your notes; nothing in them fits. Set `ANTHROPIC_API_KEY` to talk with "
    "a language model."
)
FAILED = "That did not work: {reason}"
DECLINED = "All right, I have not done it. Tell me if you want something else instead."
FORGET_ALL = (
    "I do not delete everything at once. On the memories page you can delete notes one by one, or tell me what to "
    "forget, for example *forget my allergy*."
)
NOTHING_TO_FORGET = (
    "I do not know which note you mean. Say what it is about, for example *forget my allergy*."
)
NONE_CHOSEN = "Good, I left your notes as they are."
TOO_LONG_TO_CHANGE = "That note is too long for me to change here. You can edit it on the memories page."
UNSURE = "I am not sure which part of the note to change. Say *change X to Y*, or edit it on the memories page."
TO_REVIEW = "I have put that on the *Review* page: it is remembered once you accept it there."
NO_NOTES = "You have no notes yet. Say *remember that …* and I will save one."
NO_CAPABILITIES = "You have no capabilities yet. You can write or install one on the capabilities page."
NO_CAPABILITY = "There is no capability called “{name}”. Say *list capabilities* to see which there are."
