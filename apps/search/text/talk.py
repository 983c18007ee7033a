"""Words by which a message speaks of one's own affairs, asks, or leans on what was said before.

For the languages in which most is written here; a message in another one is taken as it stands.
"""

from apps.search.text.words import SELF_WORDS

_OURS = """we us our ours ourselves wir uns unser unsere unserem unseren unserer unseres nous notre nos nosotros nosotras
    nuestra nuestras nuestro nuestros noi nostra nostre nostri nostro nós nossa nossas nosso nossos wij ons onze vi oss
    vår vårt våra мы нас нам наш наша наши"""
_TO_ME = "me us mir mich uns moi nous nos oss мне нам"
_SOMEBODY = """she her hers he him his they them their theirs same there ones
    ihm ihn ihr ihre ihrem ihren sein seine seinem seinen dort derselbe dieselbe dasselbe dieselben gleiche gleichen
    elle lui leur leurs eux là même mêmes ella él ellos ellas su sus allí mismo misma mismos mismas
    lei lui loro suo sua suoi stesso stessa stessi ela ele eles elas lá mesmo mesma zij hij hem haar hun daar zelfde"""
_SOMETHING = """it its that this those these then one es das dies diese dieser dieses dann ça cela ce cette eso esto ese
    esa ello ciò questo questa quello quella isso isto esse essa het dat dit"""
_ASKING = """who whom whose what when where which why how wer wen wem wessen was wann wo wohin woher welche welcher welches
    welchen wie warum wieso weshalb qui quoi quand où quel quelle quels quelles comment pourquoi combien quién quiénes qué
    cuándo dónde cuál cuáles cómo cuánto cuántos chi cosa quando dove quale quali come perché quanto quem onde qual quais
    quanto wat wanneer waar welke hoe waarom vad när var vilken hur varför кто что когда где какой какая как почему"""
_GOING_ON = "and so but or then also und aber oder also dann et mais ou alors y pero o e ma allora mas então en maar dus"
_CHATTER = """hi hello hey yes yeah yep no nope ok okay please sorry thank thanks thx lol haha wow oh ah hm hmm cool great fine
    sure right bye good nice hallo ja nein bitte danke tschüss gut gute guten guter super toll genau bonjour bon bonne salut oui non merci bravo hola buenos buenas sí gracias vale
    ciao grazie buon buona prego scusa bene olá bom boa sim obrigado obrigada tchau hoi goede nee dank hej tack tak привет доброе добрый да нет спасибо"""

OWN_WORDS = (SELF_WORDS | frozenset(_OURS.split())) - frozenset(_TO_ME.split())
"""Words by which people speak of what is theirs. "Tell me a joke" does not: whom it is for says nothing of the matter."""

SOMEBODY_WORDS = frozenset(_SOMEBODY.split())
"""Words that stand for a person, a place, or "the same": they mean nothing without the talk before."""

SOMETHING_WORDS = frozenset(_SOMETHING.split())
"""Words that may stand for what was said before, and as often stand for nothing ("it rains")."""

ASKING_WORDS = frozenset(_ASKING.split())

CHATTER = frozenset(_CHATTER.split())
"""Words of greeting, thanking and agreeing: whatever their vectors, they name no subject."""

GOING_ON_WORDS = frozenset(_GOING_ON.split())
"""Words that, at the beginning, go on with what was said before."""
