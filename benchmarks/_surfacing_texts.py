"""Notes that an assistant might have of one (invented) person after two years: notes of our own making.

Each line: key | days since it was written | importance | note.
"""

from dataclasses import dataclass

NOTES = """
name | 700 | 4 | The user's name is Nora Whitfield; friends call her Nor.
partner | 690 | 4 | The user is married to Sam, who works night shifts as a nurse at Southmead Hospital.
ivy | 650 | 4 | Ivy, the user's daughter, was born on 14 March 2019 and is in Year 2 at Sefton Park Primary.
theo | 650 | 4 | The user's son Theo is four and afraid of thunderstorms.
theo_allergy | 400 | 5 | Theo is allergic to peanuts; his EpiPen is in the red pouch by the front door.
sister | 40 | 4 | The user's sister Anna lives in Leeds and is getting married on 5 June 2027.
pottery | 30 | 3 | Anna has taken up pottery and dreams of a kiln of her own.
mum | 50 | 4 | The user's mother Helen had her knee replaced in September and needs lifts to physiotherapy on Thursdays.
dad | 300 | 3 | Dad's birthday is on 2 February. He collects vinyl records of British jazz.
cat | 500 | 3 | The user has a twelve-year-old cat called Biscuit, who has kidney disease and needs special food.
vet | 480 | 3 | The vet is Dr Okafor at Gloucester Road Veterinary Centre, phone 0117 496 0123.
inlaws | 200 | 3 | Sam's parents are strict vegans and come to visit every Easter.
friend | 350 | 3 | The user's best friend Jo Castellano moved to Porto in 2024.
diet | 600 | 4 | The user has been vegetarian since 2015; she eats eggs and cheese.
coriander | 120 | 2 | The user can't stand coriander.
coffee | 90 | 3 | I drink my coffee black, two cups a day at most and none after noon.
bread | 60 | 3 | The sourdough starter is fed on Fridays, one part to five of flour and five of water, and lives at the back of the fridge.
restaurant | 150 | 3 | Favourite restaurant: Pasta Loco on Cotham Hill, if possible the table by the window.
wine | 220 | 3 | Red wine gives the user migraines; she prefers a dry white such as Picpoul.
oven | 260 | 3 | The oven at home runs twenty degrees too hot.
groceries | 25 | 3 | The grocery budget is £110 a week; they shop at Lidl and at the greengrocer's.
job | 620 | 4 | The user works as a structural engineer at Harcourt & Vale in Bristol, mostly on footbridges.
boss | 90 | 3 | Her line manager Dev Patel wants status reports by Friday noon, one page at most.
tender | 20 | 4 | The Severn Beach footbridge goes to tender in January 2027.
software | 180 | 3 | At work we calculate with Tekla and Python 3.12; the scripts live in the repository span-tools.
code_style | 75 | 3 | The user prefers Python with type hints and pytest, and dislikes notebooks.
standup | 100 | 3 | Team stand-up is at 9:15 on Mondays and Wednesdays, on Teams.
leave | 15 | 3 | Eleven days of annual leave are left; they have to be taken before 31 March.
chartership | 45 | 4 | The user is preparing for her chartered engineer review with the ICE in April 2027.
laptop | 240 | 3 | The work laptop is a Dell XPS 15 with Windows 11; at home there is a MacBook Air.
presenting | 210 | 3 | The user gets nervous before speaking to large audiences and has taken a course on it.
salary | 45 | 3 | The user earns £52,000 a year and hopes for £58,000 once she is chartered.
back | 80 | 4 | The user has a slipped disc (L5/S1) and mustn't lift heavy things.
running | 35 | 3 | Training for the Bristol half marathon in May; the aim is to finish in under two hours.
swim | 130 | 3 | On Tuesday evenings the user swims at Horfield Leisure Centre.
sleep | 110 | 3 | The user sleeps badly when she looks at screens after ten in the evening.
dentist | 28 | 3 | Dentist: Dr Lowe on Whiteladies Road. Next check-up on 8 December at 8:40.
blood | 450 | 3 | Blood type O negative; the user donates twice a year.
penicillin | 640 | 5 | The user is allergic to penicillin.
lenses | 370 | 3 | Wears contact lenses of -3.25 and glasses in the evening.
thyroid | 330 | 4 | Takes levothyroxine 75 µg every morning, half an hour before breakfast.
house | 610 | 3 | The family lives at 22 Maple Grove, Bristol BS7, in a Victorian terrace bought in 2018.
boiler | 55 | 3 | The boiler is a Worcester Bosch Greenstar. The pressure has to be 1.5 bar; Tim Rudge services it each October.
wifi | 380 | 3 | The wifi at home is called Halfpenny; the router stands in the hall cupboard.
meter | 310 | 3 | The electricity meter is under the stairs. Supplier Octopus, tariff Agile.
bins | 140 | 3 | Recycling goes out on Wednesday evening, general waste every third week.
garden | 160 | 3 | The garden faces north and has heavy clay; rhubarb, kale and sweet peas do well in it.
loft | 22 | 4 | They want to convert the loft into a study and can spend £40,000 on it.
neighbour | 290 | 3 | Mrs Adeyemi next door has a spare key and waters the plants when nobody is at home.
paint | 190 | 2 | The kitchen walls are in Setting Plaster by Farrow & Ball.
car | 270 | 3 | The family drives a blue Skoda Octavia estate from 2016; its MOT is due in February.
second_car | 42 | 3 | Decided in October not to buy a second car.
bike | 230 | 3 | The cargo bike is a Tern GSD; its frame number is in the insurance folder.
mortgage | 85 | 4 | The fixed mortgage rate of 1.9 % ends in August 2027.
brittany | 18 | 4 | Summer holiday booked: a cottage near Crozon in Brittany, 24 July to 7 August 2027.
no_flying | 320 | 3 | For the climate's sake the user no longer flies on holiday; she takes trains and ferries.
seasick | 310 | 3 | The user gets seasick; cinnarizine tablets help.
passport | 33 | 3 | Theo's passport runs out in March 2027.
japan | 420 | 3 | The user dreams of seeing Japan in cherry blossom season once.
languages | 360 | 3 | Speaks fluent French and has been learning Swedish on Duolingo for two years.
cello | 12 | 3 | Plays the cello in Redland Community Orchestra. Rehearsals are on Monday evenings; on 12 December they give Dvořák's Eighth.
books | 250 | 3 | Likes crime novels by Tana French and everything by Ursula K. Le Guin; gives up on a book after fifty dull pages.
films | 280 | 3 | The user can't bear horror films.
games | 170 | 3 | On Fridays there is board game night with Marcus and Priya; the favourite is Wingspan.
knitting | 10 | 3 | The user is knitting a cardigan for Ivy in teal merino, size 7 to 8.
photos | 340 | 3 | Photographs birds with a Fujifilm X-T4 and a 100-400 mm lens.
podcast | 95 | 2 | Listens to In Our Time on long runs.
answers | 500 | 4 | The user prefers short answers with bullet points, metric units and British spelling.
emails | 390 | 3 | She signs her e-mails "Best, Nora" and dislikes exclamation marks.
calendar | 440 | 2 | Uses the calendar of Fastmail, with weeks that begin on Monday.
pickup | 70 | 3 | School pick-up at 15:15: Nora on Monday, Tuesday and Friday, Sam on Wednesday and Thursday.
swim_lessons | 65 | 3 | Ivy has swimming lessons on Saturdays at 9:30.
"""


@dataclass(frozen=True, slots=True)
class KnownNote:
    """A note, how many days ago it was written and how important it is (1 to 5)."""

    key: str
    days: int
    importance: int
    text: str


def known_notes() -> list[KnownNote]:
    """The notes of the benchmark `surfacing`, in no particular order."""
    rows = [line.split(" | ") for line in NOTES.strip().splitlines()]
    return [KnownNote(key, int(days), int(importance), text) for key, days, importance, text in rows]


MESSAGES = {
    "direct": """
sister | pottery | When is Anna's wedding?
dentist | - | Who is my dentist?
wifi | - | What is our wifi called?
mortgage | - | When does my mortgage deal end?
penicillin | - | Was it penicillin that I'm allergic to?
meter | - | Where is the electricity meter?
bins | - | Which evening does the recycling go out?
vet | cat | What's the phone number of the vet?
leave | - | How many days of annual leave do I have left?
paint | - | What are the kitchen walls painted with?
boiler | - | What pressure should the boiler have?
cello | - | When is the orchestra concert?
swim_lessons | ivy | What time are Ivy's swimming lessons?
passport | theo, theo_allergy | When does Theo's passport run out?
cat | vet | What special food does Biscuit need?
second_car | car | What did we decide about a second car?
dad | - | When is dad's birthday?
blood | - | Which blood type am I?
tender | job | When does the Severn Beach footbridge go to tender?
photos | - | Which lens do I photograph birds with?
""",
    "paraphrased": """
dad | - | I need a present for my father
groceries | restaurant | How much can we spend on food each week?
knitting | ivy | What wool did I choose for my daughter's jumper?
thyroid | - | Which medicine do I take in the mornings?
mum | - | How long ago was mum's operation?
car | second_car | What kind of automobile do we drive?
lenses | - | What prescription are my contacts?
boss | - | Who is my supervisor, and what does he expect at the end of the week?
restaurant | - | Reserve us seats at the Italian place we love
languages | - | What foreign tongues do I speak?
games | - | Who comes over on Friday to play?
ivy | pickup, theo, swim_lessons | Which school does my daughter go to?
garden | - | What vegetables grow well behind our house?
cat | vet | How old is my pet?
running | podcast | Which race am I preparing for?
house | - | In which year did we buy our home?
laptop | - | What computer do I have at the office?
brittany | no_flying, languages | When are we off to France?
books | - | Which authors do I enjoy reading?
pickup | ivy, theo | On which days do I collect the children?
salary | - | What is my current pay?
bike | second_car | Where can I find the serial number of my bicycle?
loft | - | What can we afford for the attic conversion?
chartership | - | When is my professional interview for the chartered title?
""",
    "oblique": """
diet | coriander, theo_allergy, groceries, oven, inlaws | What could I cook for dinner tonight?
theo_allergy | theo, oven, diet | We are baking biscuits for nursery, I thought of some with nuts
wine | - | Can you recommend a bottle to go with tonight's risotto?
emails | answers, ivy, pickup | Draft an e-mail to the school, I'll be late on Thursday
back | - | Could you help me plan carrying the piano upstairs on Saturday?
films | partner, games | Which scary movie should we watch on Halloween?
no_flying | seasick, brittany, car | What is the best way to get to Berlin next spring?
seasick | no_flying, brittany | I'm thinking of taking the ferry to Ireland
code_style | software | Write me a script in Python that renames photos by date
inlaws | diet, theo_allergy, oven, coriander, partner | Suggest an Easter menu for the whole family
penicillin | - | The doctor wants to give me antibiotics for my sinusitis
theo | - | There is a thunderstorm and the little one won't go to bed
sleep | coffee, thyroid | I'm tired all the time, how can I sleep better?
bread | oven | My dough isn't rising, is the starter dead?
coffee | sleep | Would an espresso at four in the afternoon be a good idea?
presenting | - | Next week I give a talk before three hundred people and I'm scared
boiler | - | The radiators stay cold and there's no hot water
pottery | sister | What would my sister like as a wedding gift?
garden | - | How do I improve the soil behind the house?
salary | chartership, boss | How should I ask for a raise?
car | second_car | My car wouldn't start this morning
swim | swim_lessons, running, back | Is there time for some exercise in the water this week?
vet | cat | The cat won't eat and just lies there
photos | - | I need a bag for my camera
running | podcast, back, swim | Which trail shoes should I buy?
neighbour | garden | We're away for two weeks, who could look after the house plants?
mortgage | salary, loft | Should we worry about interest rates next summer?
blood | - | There's a donation session at the town hall, shall I go?
""",
    "follow-up": """
pottery | sister | When is Anna's wedding? >> Anna is getting married on 5 June 2027 in Leeds. >> What could I give her?
vet | cat | Biscuit has been sick twice today >> I'm sorry to hear that. Has she eaten anything unusual? >> No. Who should I call about it?
seasick | brittany, no_flying | We're going to Brittany in July >> Lovely! Will you take the ferry? >> Yes. What helped me last time?
theo_allergy | theo, oven, dad | I'm baking a cake for Theo's party >> How nice! A chocolate sponge is always a hit. >> Is there anything he can't eat?
tender | job | What is on for the Severn Beach footbridge this week? >> The final drawings are due for checking. >> And when does it go out?
inlaws | partner, diet | Help me plan a dinner for Sam's parents >> With pleasure. For how many people? >> Four. What don't they eat?
boiler | - | The boiler makes a strange noise >> That may be limescale, which a service would remove. >> Who does that for us?
back | - | My back hurts again today >> I'm sorry. Rest, warmth and gentle movement usually help. >> So no deadlifts?
cello | - | I have a rehearsal tonight >> Enjoy it! Is there a concert soon? >> Yes, remind me when it is and what we play
books | - | I want to read something new >> Gladly. Which kind of book do you like? >> The same authors as ever
brittany | no_flying, languages, seasick | I need to book time off for our summer holiday >> Of course. How long will you be away? >> Look it up, from when to when is it?
neighbour | - | I've locked myself out >> Oh no! Does anybody have a spare key? >> I think so, who was it?
""",
    "change of subject": """
- | - | When is Anna's wedding? >> Anna is getting married on 5 June 2027 in Leeds. >> Thanks!
- | - | What could I cook for dinner tonight? >> How about a mushroom risotto? It is vegetarian and takes half an hour. >> What is 12 times 12?
- | - | Where is the router? >> It stands in the hall cupboard. >> Tell me a joke
- | - | Plan our days in Brittany >> Here is a plan. Day one: arrive in Crozon, settle in, walk on the beach. Day two: the lighthouse and a crêperie in Camaret. Day three: market, then the aquarium with the children. Day four: rest and read. >> Great, now explain what a black hole is
- | - | The cat won't eat >> Try warming the food a little; if it lasts, call the vet. >> Who won the world cup in 1998?
- | - | How should I train for a half marathon? >> Build up slowly: three runs a week, one of them long, and rest days between. >> ok, got it
- | japan | Which medicine do I take in the mornings? >> Levothyroxine 75 µg, half an hour before breakfast. >> How do you say good morning in Japanese?
- | - | Write me a script in Python that renames photos by date >> Here it is: it reads the date from each file and renames it. >> Perfect, you're a star
- | - | What pressure should the boiler have? >> 1.5 bar. >> roll 3d6
- | - | When does Theo's passport run out? >> In March 2027. >> Who painted the Night Watch?
- | - | How do I ask for a raise? >> Prepare what you achieved, name a figure, and choose a calm moment. >> Good idea
- | - | Which film should we watch tonight? >> A comedy might be nice after a long week. >> What is the capital of Australia?
""",
    "small talk": """
Hi!
Good morning, how are you today?
Thanks, that's great
ok cool
lol that's funny
Tell me a joke
You're very helpful today
What can you do?
Who made you?
Good night
I'm bored
Never mind
Yes, please
No, that's wrong
Let's start over
What's the weather like?
How's it going?
Can you help me with something?
Wow, I didn't know that
Please try again
Are you a real person?
Sorry, I have to go now
""",
    "task": """
what is 2+2
What is 17 * 23?
roll 3d6
Flip a coin
What is 15% of 80?
Set a timer for ten minutes
What time is it in Tokyo?
Generate a random password
Sort these numbers: 4, 8, 1, 9
Translate "see you tomorrow" into Italian
How many days are there in February 2028?
Summarise this text in one sentence
Pick a number between one and a hundred
Count the words in the last paragraph
What day of the week was 1 May 1999?
Write a haiku about autumn
What is the square root of 144?
List all prime numbers below 50
Make a table with three columns
Reverse the string "assistant"
""",
    "general knowledge": """
What is the capital of Australia?
How does photosynthesis work?
Who wrote Pride and Prejudice?
What is the boiling point of nitrogen?
Explain the difference between TCP and UDP
When did the Second World War end?
How tall is Mount Everest?
What does ubiquitous mean?
Who won the world cup in 1998?
How many planets are in the solar system?
Why is the sky blue?
List the presidents of the USA since 1990
What's the population of Brazil?
How do vaccines work?
What is a monad?
Who painted the Night Watch?
How old is the universe?
What is the longest river in Africa?
Where does the word robot come from?
How do bees make honey?
When is the next leap year?
What is the difference between a virus and a bacterium?
Name three rivers in Germany
What is the meaning of life?
Who invented the telephone?
How does a nuclear power station work?
Which country has the most time zones?
What is quantum entanglement?
""",
}
PLAIN = {"small talk", "task", "general knowledge"}  # lines that want no note


@dataclass(frozen=True, slots=True)
class Utterance:
    """A talk, oldest first, and what its last message should bring up: `wanted`; `fitting` does no harm."""

    kind: str
    talk: tuple[str, ...]
    wanted: frozenset[str]
    fitting: frozenset[str]
    held_back: bool


def messages() -> list[Utterance]:
    """All messages of the benchmark `surfacing`, by kind."""
    found: list[Utterance] = []
    for kind, lines in MESSAGES.items():
        for number, line in enumerate(lines.strip().splitlines()):
            wanted, fitting, text = line.split(" | ") if kind not in PLAIN else ("-", "-", line)
            talk = tuple(text.split(" >> "))
            found.append(Utterance(kind, talk, _keys(wanted), _keys(fitting), held_back=number % 2 == 1))
    return found


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split(", ")) - {"-"}


NONSENSE = tuple(
    line
    for line in """
Hi there
asdf qwer zxcv
hello
lorem ipsum dolor sit amet
thanks!
blorf the grindle snazz
ok
xyzzy plugh
how are you?
the the the
good morning
colourless green ideas sleep furiously
Guten Morgen
123456789
yes
quantum chromodynamics lattice gauge
no way
SELECT * FROM users
haha lol
sqrt(-1)
cool, thanks
what is the boiling point of tungsten
see you later
wibble wobble
what's up
umbrella giraffe parliament xylophone
bonjour
banana telephone ceiling
hmm
dfghjkl
test test 123
foo bar baz
what is 12 times 12?
gloopy snorkwaffle dimbletron
???
kubernetes ingress yaml
1 2 3 4 5
isotopes of hydrogen
good evening
who invented the telegraph
sure
my hovercraft is full of eels
right
jabberwocky borogoves mome raths
buenos días
tax treaty Liechtenstein Uruguay
nice
derivative of x squared
a
who won the 1954 world cup
bye
unladen swallow airspeed velocity
okay then
what is the capital of Mongolia
lol
the quick brown fox jumps over the lazy dog
!!!
how does a carburettor work
hey
flibbertigibbet zorp
""".strip().splitlines()
)
