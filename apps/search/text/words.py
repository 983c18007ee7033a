"""Words that carry no topic: the function words of the languages that Izzy tells apart, by which a text is recognised, and those
by which a message speaks of people and times, asks, greets or goes on.

Lists of function words are short on purpose: a word that someone might search for is no stop word.
"""

_LISTS = {
    "en": """
        a about above after again all also am an and any are as at be because been before being below between both
        but by can could did do does doing down during each few for from further had has have having he her here
        hers herself him himself his how i if in into is it its itself just me more most my myself no nor not of off
        on once only or other our ours ourselves out over own same she should so some such than that the their theirs
        them themselves then there these they this those through to too under until up very was we were what when
        where which while who whom whose why will with would you your yours yourself yourselves shall may might must
        ain aren couldn didn doesn don hadn hasn haven isn mightn mustn needn shan shouldn wasn weren won wouldn
        ll re ve d m s t im ive id dont doesnt didnt isnt wasnt cant wont""",
    "de": """
        aber alle allem allen aller alles als also am an ander andere anderen anderer anderes auch auf aus bei bin bis
        bist da damit dann das dass daß dein deine deinem deinen deiner dem den denn der des dessen dich die dies diese
        diesem diesen dieser dieses dir doch dort du durch ein eine einem einen einer eines er es etwas euch euer eure
        für gegen hab habe haben hat hatte hatten hier hin hinter ich ihm ihn ihnen ihr ihre ihrem ihren ihrer im in
        indem ins ist ja jede jedem jeden jeder jedes jetzt kann kein keine keinem keinen keiner können könnte mal man
        mein meine meinem meinen meiner mich mir mit muss musste nach nicht nichts noch nun nur ob oder ohne sehr sein
        seine seinem seinen seiner sich sie sind so soll sollte sondern sonst über um und uns unser unsere unter vom
        von vor war waren warst was weil welche welchem welchen welcher welches wenn wer wie wieder will wir wird wirst
        wo wollen wollte würde würden zu zum zur zwar zwischen wann warum""",
    "fr": """
        à ai ainsi alors as au aucun aussi autre aux avait avant avec avez avoir avons c ça car ce ceci cela celle
        celles celui ces cet cette ceux chez comme comment d dans de des donc dont du elle elles en encore entre es est
        et étaient était étant été être eu eux fait faut furent il ils j je l la là le les leur leurs lors lui m ma
        mais me même mes moi mon n ne ni nos notre nous on ont ou où par pas peu peut plus pour pourquoi qu quand que
        quel quelle quelles quels qui s sa sans se sera ses si son sont sous suis sur t ta te tes toi ton tous tout
        toute toutes très tu un une vos votre vous y""",
    "es": """
        a al algo algunas algunos ante antes aquel aquella así aún aunque cada como cómo con contra cual cuál cuando
        cuándo de del desde donde dónde durante e el él ella ellas ellos en entre era eran eres es esa esas ese eso esos
        esta está estaba están estar estas este esto estos estoy fue fueron ha había han has hasta hay he la las le les
        lo los más me mi mis mí mucho muy nada ni no nos nosotros nuestra nuestro o otra otro para pero poco por porque
        qué que quien quién se sea ser si sí sido sin sobre son soy su sus también te tengo ti tiene todo todos tu tú
        tus un una uno unos usted y ya yo""",
    "it": """
        a ad agli ai al alla alle allo anche avere aveva c che chi ci come con contro cui da dagli dai dal dalla dalle
        degli dei del della delle dello di dove e è ed era erano essere fa fra già gli ha hai hanno ho i il in io l la
        le lei li lo loro lui ma me mi mia mie miei mio molto ne negli nei nel nella nelle noi non nostra nostro o ogni
        per perché però più poi quale quali quando quanto quella quelle quelli quello questa queste questi questo qui
        se sei si sia siamo sono sta su sua sue sugli sul sulla suo suoi tra tu tua tue tuo tuoi tutti tutto un una uno
        vi voi""",
    "pt": """
        a ao aos aquela aquele aquilo as às até com como da das de dela dele deles depois do dos e é ela elas ele eles
        em entre era eram essa esse esta está estão estava este eu foi foram há isso isto já lhe mais mas me mesmo meu
        meus minha minhas muito na não nas nem no nos nós nossa nosso num numa o onde os ou para pela pelas pelo pelos
        por porque quais qual quando que quê quem são se sem ser seu seus só sou sua suas também te tem têm tenho ter
        teu tinha tu tua um uma umas uns você vocês""",
    "nl": """
        aan al alles als altijd andere ben bij daar dan dat de der deze die dit doch doen door dus een eens en er ge
        geen geweest haar had heb hebben heeft hem het hier hij hoe hun iemand iets ik in is ja je jij jou jouw kan kon
        kunnen maar me meer men met mij mijn moet na naar niet niets nog nu of om omdat onder ons ook op over reeds te
        tegen toch toen tot u uit uw van veel voor waar waarom wanneer want waren was wat we wel welke werd wezen wie
        wij wil worden wordt zal ze zelf zich zij zijn zo zonder zou""",
    "sv": """
        alla allt att av bara blev bli blir de dem den denna deras dess det detta dig din dina ditt du där då efter ej
        eller en er ett från för ha hade han hans har henne hennes hon honom hur här i icke inte ja jag kan kunde man
        med mellan men mig min mina mitt mot mycket ni nu när någon något några och om oss på samma sedan sig sin sina
        sitt själv ska skulle som så sådan till under upp ut utan var vad varför vara vem vi vid vilken vilket är""",
    "da": """
        af alle alt anden at blev blive bliver da de dem den denne der deres det dette dig din disse dog du efter eller
        en end er et for fra ham han hans har havde have hende hendes her hos hun hvad hvem hvis hvor hvornår i ikke ind
        jeg jer kan kun man mange med meget men mig min mine mit mod ned noget nogle nu når og også om op os over på
        selv sig sin sine sit skal skulle som sådan thi til ud under var vi vil ville vor være været""",
    "no": """
        alle at av bare ble bli blir da de deg dem den denne der deres det dette din du eller en er et etter for fordi
        fra før ha hadde han hans har hennes henne her hos hun hva hvem hvis hvor hvordan hvorfor i ikke inn ja jeg kan
        kun kunne man mange med meg meget mellom men mer min mine mitt mot mye ned noe noen nå når og også om opp oss på
        seg selv sin sine sitt skal skulle som så til under ut uten var vi vil ville vår være vært""",
    "fi": """
        ei eivät en et ette että hän häneen hänen he heidän heille hänelle ja jo joka jos jota kanssa kaikki koska
        kuin kuka kun kyllä me meidän meille mikä millä milloin minä minua minulla minulle minun missä mitä mukaan mutta
        myös ne niin niitä nyt ole olen olet oli olin olla olivat on ovat se sekä sen siellä siinä sille sinä sinun sitä
        tai te tämä tämän tätä vai vain vaan voi""",
    "pl": """
        a aby ale ani aż bardzo bez bo być by był była było były ci cię co czy dla do gdy gdzie go i ich ile im ja jak
        jakie jako je jego jej jest jestem jeszcze jeśli już każdy kiedy kto która które którego której który którzy ma
        mam mi mnie mój moja może my na nad nam nas nasz nie nic niej nim nich no o od on ona one oni po pod przez przy
        się są sobie ta tak także tam te tego tej ten to tu twój ty tych tylko tym w we wszystko z za ze że""",
    "cs": """
        a aby ale ani až bez bude by byl byla byli bylo být co což do ho i já jak jako je jeho jej její jen ještě jsem
        jsi jsme jsou k kam kde kdo kdy když která které který kteří ma mají mě mi mít mnou můj moje my na nad nám nás
        náš ne nebo není nic o od on ona oni po pod podle pro proč protože při s se si svůj ta tak také tam te tedy ten
        tento to tohle toho tom tu tuto tvůj ty u už v váš ve však vy z za ze že""",
    "tr": """
        acaba ama ancak artık aslında az bana bazı belki ben beni benim bir biri biz bize bizim bu buna bunda bunlar
        bunu bunun çok çünkü da daha de değil diye en gibi hangi hep hem hepsi her hiç için ile ise ki kim kime mı mi
        mu mü nasıl ne neden nerede niye o olan olarak oldu olduğu olur ona onlar onu onun sana sen seni senin siz sizin
        şey şu tüm var ve veya ya yani yok""",
    "ro": """
        a acea aceasta această aceste acestea acest acesta acum ai al ale am ar are aş aşa asta au avea că când care cât
        ce cel cele cine cu cum dar de decât deci din după ea ei el ele era este eu fi fie fost foarte i îi îl îmi în
        între îşi îţi la le lor lui mai mă mea mei meu mi mult ne nici nimic noi nostru nu o ori pe pentru prin sa să
        sau se și şi sunt ta te tot toate tu un una unde unei unui vă voi""",
    "hu": """
        a az abban ahhoz aki ami amikor amit annak arra azok azt be benne csak de e egy egyik ehhez ekkor el én ennek
        erre és ez ezek ezt fel hanem hiszen hogy hol igen így is itt ki kell le lehet lenne lesz ma már meg mert mi
        miért mikor milyen minden mint mit most nagyon ne neki nem nincs ő ők olyan ott pedig s sem sok te tehát ti
        után utána ugye úgy vagy vagyok van vannak volt voltam voltak""",
    "ru": """
        а без бы был была были было быть в вам вас весь во вот все всё всегда всех вы где да даже для до его ее её если
        есть еще ещё же за здесь и из или им их к как какая какой когда кто ли лишь меня мне может мой моя мои мы на над
        надо наш не него нее ней нет ни них но ну о об один она они он оно от очень по под после потому почему при с
        сам свою себя со так такой там тебя тем то тогда того тоже той только том ты у уже хотя чего чей чем что чтобы
        чье эта эти это этого этой этот я""",
    "uk": """
        а або але б без був була були було бути в вам вас ви від він вона вони воно все всі да де для до є з за зі і із
        її їм їх його й коли хто мене мені може мій моя ми на над нам нас наш не немає ні них ну об під по при про з
        себе собі та так також там те ти то тобі тому тут у це цей ця ці чи чого чому що щоб як яка який я""",
}

STOP_WORDS: dict[str, frozenset[str]] = {
    code: frozenset(words.split()) for code, words in _LISTS.items()
}
"""Language code -> its stop words, casefolded, accents kept."""

ENGLISH_TOO = frozenset({"go", "one", "ten"})
"""Polish function words that English has as often: they speak for either. No stop words there, as somebody may search for them."""

STEMMERS: dict[str, str] = {
    "ar": "arabic", "ca": "catalan", "cs": "czech", "da": "danish", "de": "german", "el": "greek", "en": "english",
    "es": "spanish", "et": "estonian", "eu": "basque", "fa": "persian", "fi": "finnish", "fr": "french", "ga": "irish",
    "hi": "hindi", "hu": "hungarian", "hy": "armenian", "id": "indonesian", "it": "italian", "lt": "lithuanian",
    "ne": "nepali", "nl": "dutch", "no": "norwegian", "pl": "polish", "pt": "portuguese", "ro": "romanian",
    "ru": "russian", "sr": "serbian", "sv": "swedish", "ta": "tamil", "tr": "turkish", "yi": "yiddish",
}  # fmt: skip
"""Language code -> Snowball algorithm; a language that is not listed is searched by whole words."""

_TIME = """
    yesterday today tonight tomorrow last next ago week weekend weeks month months year years day days recently since
    monday tuesday wednesday thursday friday saturday sunday january february march april may june july august
    september october november december summer winter spring autumn morning evening night
    gestern heute morgen letzte letzten nächste woche wochen monat monate jahr jahre tag tage vor seit montag dienstag
    mittwoch donnerstag freitag samstag sonntag januar februar märz mai juni juli oktober dezember
    hier aujourd'hui demain semaine mois année an ans jour jours depuis lundi mardi mercredi jeudi vendredi samedi
    dimanche janvier février mars avril juin juillet août septembre octobre novembre décembre
    ayer hoy mañana semana mes año años día días hace lunes martes miércoles jueves viernes sábado domingo enero febrero
    marzo abril mayo junio julio agosto septiembre octubre noviembre diciembre
    ieri oggi domani settimana mese anno giorno fa lunedì martedì mercoledì giovedì venerdì sabato domenica
    ontem hoje amanhã mês ano dia gisteren vandaag morgen maand jaar dag geleden
    вчера сегодня завтра неделя неделю месяц год назад день
"""
_SELF = """i my me mine myself ich mein meine mir mich je mon ma mes moi yo mi io mio mia eu meu minha ik mijn jag jeg
    я мой мне"""
_OTHER = "you your yours du dein deine tu ton te tuo tua você jij jouw ты твой"

TIME_WORDS = frozenset(_TIME.split())
"""Words by which a text says when something was."""

SELF_WORDS = frozenset(_SELF.split())
OTHER_WORDS = frozenset(_OTHER.split())
"""Words for the one who speaks and for the one who is spoken to."""

# Words by which a message speaks of one's own affairs, asks, or leans on what was said before, for the languages in which most
# is written here; a message in another one is taken as it stands.
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

SOMEBODY_WORDS = frozenset(_SOMEBODY.split())
"""Words that stand for a person, a place, or "the same": they mean nothing without the talk before."""

SOMETHING_WORDS = frozenset(_SOMETHING.split())
"""Words that may stand for what was said before, and as often stand for nothing ("it rains")."""

ASKING_WORDS = frozenset(_ASKING.split())

CHATTER = frozenset(_CHATTER.split())
"""Words of greeting, thanking and agreeing: whatever their vectors, they name no subject."""

GOING_ON_WORDS = frozenset(_GOING_ON.split())
"""Words that, at the beginning, go on with what was said before."""
