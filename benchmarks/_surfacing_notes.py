"""What an assistant might know of one (invented) person after two years: notes of our own making.

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
