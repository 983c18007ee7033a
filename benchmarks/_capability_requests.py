"""A catalog of tools and what people say when they need one: a test set of our own making.

Each line: name | description | tags | a request | an oblique request. Descriptions say what a tool does and when to use it, as
the editor and the builder ask for. The request names its matter in words of its own; the oblique one does not even do
that, and often takes knowledge of the world to be understood ("Has LH 442 landed already?").
"""

from dataclasses import dataclass

TARGETS = """
weather_forecast | Look up the weather forecast for a city over the coming days. Use it for questions about rain, temperature, wind, snow or what to wear. | weather, travel | Will it rain in Hamburg tomorrow? | Do I need an umbrella in Hamburg tomorrow?
currency_convert | Convert an amount of money from one currency to another at today's exchange rate. Use it for prices in euros, dollars, pounds and other money abroad. | money, travel | How many euros are 250 dollars? | How much is 250 dollars in euros right now?
unit_converter | Convert lengths, weights, volumes and temperatures between metric and imperial units. Use it for miles, kilometres, pounds, kilos, litres, gallons, feet, inches, Celsius and Fahrenheit. | measures | What are 26 miles in kilometres? | How many kilometres are 26 miles?
dice_roller | Roll dice with any number of sides and add them up. Use it in role-playing and board games. | games, random | Throw two dice with twenty sides | Throw two twenty-sided dice for my dungeon session
password_generator | Generate a random password of a given length. Use it when somebody signs up somewhere and needs secure passphrases. | security | Make me a secure password with 20 characters | I need something strong and random to protect my new account
qr_code | Make a QR code picture from a text or link. Use it to share addresses, WiFi access or contacts for phones to scan. | image | Create a QR code for our guest WiFi | Turn this link into something guests can scan with their phone
bmi_calculator | Compute the body mass index from height and weight. Use it for questions about healthy weight. | health | What is my BMI at 1.82 m and 90 kilos? | Am I overweight at 1.82 m and 90 kilos?
loan_payment | Compute monthly payments and total interest of a loan or mortgage. Use it for credit, instalments and house financing. | money | What are the monthly instalments for a house loan of 300,000 over 25 years? | What would a 300,000 mortgage over 25 years cost me each month?
tip_splitter | Split a restaurant bill including tip between several people. Use it after eating out, when friends share the cost. | money, food | Split the bill of 120 between four friends with 15 percent tip | Four of us had dinner for 120, what does each of us owe with 15 percent for the waiter?
time_zone_convert | Convert a time of day from one time zone to another. Use it for meetings and calls with people abroad. | time, travel | If the call is at 3 pm Tokyo time, what time is that in Boston? | When it is 3 pm in Tokyo, what time is it for my colleague in Boston?
days_between | Count the days between two dates. Use it for countdowns, ages and deadlines. | time | How many days are left until 24 December? | How long is it until Christmas?
public_holidays | List the public holidays of a country in a year. Use it for planning leave and bank holidays. | time, travel | When are the bank holidays in Austria next year? | Which days are shops closed in Austria next year?
moon_phase | Tell the phase of the moon on a date. Use it for full moon and new moon. | astronomy | When is the next full moon? | Will it be full moon on my birthday?
sunrise_sunset | Compute the times of sunrise and sunset for a place and day. Use it for daylight, dusk and dawn. | astronomy, weather | At what time does the sun go down in Oslo on Friday? | When does it get dark in Oslo on Friday?
air_quality | Look up the present air quality and fine dust of a place. Use it for smog and pollution. | health, weather | How bad is the air pollution in Krakow? | Is the smog bad in Krakow today, can I go jogging?
pollen_count | Look up the pollen load for allergies in a region. Use it for hay fever, grass and birch. | health, weather | How much birch pollen is flying in Vienna today? | My hay fever is terrible, are the birches blooming around here?
tide_table | Look up high and low tide at a coast. Use it for beach walks, boats and harbours. | sea, travel | When is low tide in Husum? | When can we walk across the mudflats at the beach?
train_connections | Find train connections between two stations with departure times. Use it for timetables and rail journeys. | travel | Which trains go from Lyon to Turin this evening? | How do I get by rail from Lyon to Turin this evening?
flight_status | Look up whether a flight is on time, delayed or cancelled. Use it for planes, arrivals and departures at an airport. | travel | Is flight LH 442 on time? | Has LH 442 landed already?
parcel_tracking | Follow a parcel by its tracking number. Use it for deliveries and shipments on their way. | shopping | Where is my parcel 1Z999? | Where is my delivery with the code 1Z999?
stock_quote | Look up the current price of a share. Use it for companies on the stock exchange. | money | What is the share price of Siemens? | What is Siemens trading at?
crypto_price | Look up the price of Bitcoin, Ether and other coins. Use it for cryptocurrencies. | money | What does one Bitcoin cost? | How much is one bitcoin worth?
recipe_search | Find recipes by the ingredients at hand. Use it for cooking and what to eat. | food | What can I cook with leeks, eggs and cream? | I have leeks, eggs and cream in the fridge, what can I cook?
nutrition_facts | Look up calories, protein, fat and carbohydrates of foods. Use it for diets and healthy eating. | food, health | How many calories are in an avocado? | How many calories does an avocado have?
wine_pairing | Suggest a wine that goes with a dish. Use it for drinks at dinner. | food | Which wine fits roast lamb? | What should we drink with the lamb on Sunday?
cooking_timer_plan | Plan when to start each dish so that everything is ready at once. Use it for menus with several courses. | food, time | When do I start the potatoes and the roast so that all dishes are done at seven? | The roast, potatoes and beans should all be on the table at seven
spell_check | Check the spelling of a text and list the mistakes. Use it for typos and proofreading. | writing | Check my letter for spelling errors | Did I misspell anything in this letter?
translate_text | Translate a text into another language. Use it for sentences in French, Spanish, German, Japanese and others. | writing, languages | Translate this sentence into Portuguese | How do you say this in Portuguese?
word_count | Count words, characters and reading time of a text. Use it for the length of essays and articles. | writing | How many words does my essay have? | Is my essay longer than 2000 words?
summarize_url | Fetch an article and shorten it to its main points. Use it for long articles and web pages that need a short summary. | writing, web | Summarise this article for me in three points | Give me the gist of this newspaper piece
readability_score | Rate how easy a text is to read by the Flesch formula. Use it to see whether writing is simple enough. | writing | How easy to read is this paragraph? | Would a twelve-year-old understand this paragraph?
synonym_finder | Find words with the same meaning. Use it for a better word or variety in writing. | writing, languages | Give me another word for "beautiful" | What else could I say instead of "beautiful"?
rhyme_finder | Find words that rhyme with a word. Use it for poems and song writing. | writing, poetry | What rhymes with "heart"? | I am writing a song and need something that sounds like "heart"
anagram_solver | Find anagrams of letters, for word games. Use it for Scrabble. | games, languages | Which Scrabble words can be made of the letters R E T A I N S? | Which words can I lay in Scrabble with R E T A I N S?
crossword_helper | Find words that fit a pattern with gaps, for crosswords. Use it for clues with some letters known. | games, languages | Crossword, seven letters, starts with P, fifth letter L | Seven letters, begins with P and the fifth is an L
sudoku_solver | Solve a Sudoku puzzle. Use it for number puzzles with a grid. | games | Solve this sudoku | Fill in the missing numbers of this nine by nine grid
chess_position | Evaluate a chess position given as FEN and suggest a move. Use it for analysing chess games. | games | What is the best move in this chess position? | What would a strong player do as White here?
random_picker | Pick a random item from a list, to decide or to draw lots. Use it for raffles, lotteries and choosing by chance. | random | Pick one of Ana, Ben and Carl by chance | Choose who has to do the dishes: Ana, Ben or Carl
coin_flip | Flip a coin. Use it to decide heads or tails. | random, games | Toss a coin | Heads or tails?
team_splitter | Divide people into random teams of equal size. Use it for sports and group work. | random, games | Make two random teams out of twelve players | We are twelve for football, make two fair sides
color_convert | Convert colours between hex, RGB and HSL. Use it for web design and colour codes. | design | What is the RGB value of #ff8800? | What is #ff8800 in RGB?
color_palette | Make a palette of colours that go together. Use it for themes of websites and rooms. | design | Suggest colours that go with teal | Which shades match teal for my living room website?
image_resize | Resize and crop a picture. Use it for photos that are too large. | image | Make this photo smaller, 800 pixels wide | This photo is far too big to mail, make it 800 pixels wide
exif_reader | Read the camera data and place from a photo. Use it for metadata such as date, lens and GPS position. | image | Which camera took this photo and where? | Where and when was this snapshot taken?
pdf_merge | Join several PDF files into one. Use it to combine scans and documents. | documents | Combine these three PDFs into one | Put these three scans into a single document
pdf_extract_text | Extract the text of a PDF file. Use it to copy or search words in documents. | documents | Get me the text out of this PDF | I want to copy the words out of this scanned contract
csv_to_json | Convert CSV tables to JSON. Use it to change the format of tables and spreadsheets. | data | Convert this CSV into JSON | Turn this spreadsheet export into something my script can parse as objects
json_formatter | Format and check JSON. Use it to indent, pretty-print and validate. | data | Pretty-print this JSON and check whether it is valid | Make this minified config legible and tell me whether it is valid
csv_statistics | Compute mean, median and spread of the columns of a CSV table. Use it to analyse data and spreadsheets. | data | What are the averages of the columns in my CSV? | What are the averages in this table of measurements?
chart_maker | Draw a line, bar or pie chart from numbers. Use it to visualise data as a diagram or graph. | data, image | Draw a bar chart of my expenses | Plot my monthly expenses as bars
regex_tester | Test a regular expression against sample texts. Use it to debug patterns. | programming | Does this regex match the sample? | Does this pattern match German phone numbers?
cron_explainer | Explain a cron expression and list its next runs. Use it for schedules of jobs on servers. | programming, time | When does the cron job 0 4 * * 1 run? | What does 0 4 * * 1 mean?
base64_codec | Encode and decode base64. Use it for encoded strings. | programming | Decode this base64 string | Decode aGVsbG8= for me
hash_text | Compute MD5, SHA-1 and SHA-256 checksums. Use it to verify files and strings. | programming, security | Compute the SHA-256 of this string | Give me the fingerprint of this string so that I can verify it
jwt_decoder | Decode a JSON web token and show its claims. Use it to inspect login tokens. | programming, security | What claims are in this JWT? | When does this bearer token expire?
http_status | Check whether a website is up and how fast it answers. Use it to see if a site is reachable, down or slow. | web | Is my website down? | Is my blog down or is it just me?
dns_lookup | Look up the DNS records of a domain. Use it for name servers, mail servers and addresses of a domain. | web | Show me the DNS records of example.org | Which mail servers does example.org use?
whois_lookup | Look up who registered a domain and when it expires. Use it for owners of domain names. | web | Who is the owner of the domain example.org? | Who owns this internet address?
ssl_expiry | Check when the TLS certificate of a site expires. Use it for https certificates that have to be renewed. | web, security | When does the certificate of my site run out? | Do I have to renew the https of my shop soon?
ip_location | Find where an IP address is located. Use it for the country and city of an IP. | web | In which country is the IP 81.2.69.142? | Which country does 81.2.69.142 come from?
page_links | List all links on a web page and find broken ones. Use it to check a website for dead links. | web | Find broken links on my homepage | Are there dead references on my homepage?
rss_reader | Read the newest entries of RSS feeds. Use it for blogs and podcasts somebody follows. | web, news | Are there new posts in my feeds? | Anything new on the blogs I follow?
news_headlines | Fetch the latest headlines by topic. Use it for current events, politics and sports news. | news | What are today's headlines in politics? | What happened in the world today?
git_log_summary | Summarise what changed in a Git repository. Use it for commits and changes in code. | programming | What commits were made in the repository last week? | What did my team commit last week?
github_issues | List open issues of a GitHub repository. Use it for bugs and feature requests of a project. | programming | Which issues are open in our GitHub repository? | Which bugs have been reported in our project?
docker_tags | List the available tags of a Docker image. Use it for versions of container images. | programming | Which tags of the postgres image are there? | What is the newest container version of postgres?
package_version | Look up the newest release of a Python package. Use it for libraries on PyPI and their updates. | programming | What is the latest version of the numpy package? | Is there an update of numpy?
todo_add | Add a task to the Todoist list. Use it for to-dos, errands and things not to forget. | productivity | Add buying milk to my to-dos | Put buying milk on my list of things to do
calendar_add | Create an event in the calendar. Use it to schedule meetings and appointments. | productivity, time | Schedule an appointment with the dentist on Thursday at ten | Block Thursday at ten for the dentist
calendar_today | List today's appointments from the calendar. Use it for the agenda and schedule of the day. | productivity, time | Which appointments do I have today? | What is on my agenda?
email_send | Send an e-mail by SMTP. Use it to write a mail to somebody. | communication | Mail Sabine that I will be late | Write to Sabine that I will be late
sms_send | Send a text message to a phone number. Use it to text somebody on the mobile. | communication | Send my brother a text message | Text my brother that the train is cancelled
telegram_post | Post a message to a Telegram chat. Use it to tell something to a Telegram group. | communication | Tell the Telegram group that practice is moved | Tell the Telegram group that practice is moved
matrix_notify | Send a notification to a Matrix room. Use it to alert people in a Matrix chat room. | communication | Notify the family room on Matrix | Let the family room on Matrix know dinner is ready
smart_lights | Switch the lights at home on and off and dim them. Use it for lamps in any room, their brightness and colour. | home | Dim the lights in the living room | It is too bright in here, make it cosy
thermostat_set | Set the temperature of the heating. Use it when it is too cold or too warm in a room. | home | Turn up the heating in the bedroom | I am freezing, warm up the bedroom
vacuum_start | Start the robot vacuum cleaner. Use it to clean the floor. | home | Let the robot vacuum the kitchen | The floor is full of crumbs, have it hoovered
plant_watering | Tell which house plants need water, by when they got it last. Use it for flowers and pots. | home | Which plants have to be watered? | Does the ficus have to be watered?
energy_usage | Read the electricity meter and compare with last month. Use it for power consumption and electricity bills. | home, money | How much electricity did we use this month? | Are we using more power than usual?
solar_yield | Estimate the yield of a photovoltaic system for a day. Use it for solar panels on the roof. | home, weather | How much will our solar panels yield tomorrow? | How much will the panels on my roof produce tomorrow?
car_range | Estimate how far the electric car gets with its present charge. Use it for battery, charging and trips with an EV. | travel, car | How far can I drive with the charge that is left? | Can I make it to Salzburg without stopping at a charger?
fuel_prices | Find cheap petrol stations nearby. Use it for petrol, diesel and gas stations. | car, money | Where is petrol cheap around here? | Where can I fill up the tank without paying a fortune?
parking_finder | Find free parking spaces in a city. Use it for garages and car parks. | car, travel | Where is a free car park in Graz? | Where can I leave the car near the opera?
bike_route | Plan a bicycle route with distance and climb. Use it for cycling tours and commutes. | travel, sport | Plan a cycling route to work | I want to cycle to work without too many hills
running_pace | Compute pace, speed and finishing times for runs. Use it for joggers, marathons and races. | sport | What pace do I need for a marathon in four hours? | What do I have to run per kilometre for a marathon below four hours?
calories_burned | Estimate the energy used by a sport. Use it for running, swimming, cycling and the gym. | sport, health | How many calories do I burn with 45 minutes of swimming? | How much did I burn off swimming for 45 minutes?
heart_rate_zones | Compute training zones from age and resting pulse. Use it for pulse and endurance training. | sport, health | What are my heart rate zones at 40 years? | At which pulse should I train for endurance?
sleep_cycles | Suggest when to go to bed for waking up rested. Use it for bedtime and alarm clocks. | health, time | When should I go to bed to wake up rested at six? | I have to get up at six, when should I turn in?
medication_reminder | Tell which medicines are due, by a plan. Use it for pills and their times. | health | Which medicines do I have to take now? | Have I taken all my pills?
cycle_calendar | Predict the next period and fertile days. Use it for menstruation and ovulation. | health | When is my next period? | When will my next menstruation begin?
baby_names | Suggest first names by origin and first letter. Use it for parents who expect a child. | family | Suggest Nordic names for a baby girl | What could we call our daughter, maybe something Nordic?
gift_ideas | Suggest presents by person, occasion and budget. Use it for birthdays and Christmas. | family, shopping | What present could I give my father for his birthday? | I have no clue what to get my father for his 70th
book_lookup | Look up a book by title or ISBN. Use it for authors, novels and publication dates. | books | Who is the author of the book The Master and Margarita? | Who wrote The Master and Margarita and when did it come out?
movie_ratings | Look up ratings and cast of a film. Use it for movies, actors and reviews. | films | How are the ratings of the film Paris, Texas? | Is Paris, Texas worth watching?
song_lyrics | Find the lyrics of a song. Use it for the words of songs and who sings them. | music | Show me the lyrics of Life on Mars | What do they actually sing in Life on Mars?
chord_finder | Show how a guitar chord is fingered. Use it for guitar players. | music | How do I finger F sharp minor on the guitar? | Where do I put my fingers for F sharp minor?
metronome_bpm | Compute tempo from taps and note lengths in milliseconds. Use it for musicians who need beats per minute. | music | How many milliseconds is an eighth note at a tempo of 96? | How long is an eighth note at 96 beats?
constellation_map | Tell which constellations are in the sky tonight. Use it for stars and planets to watch. | astronomy | Which constellations can I see tonight? | What stars can I see from the balcony at midnight?
periodic_table | Look up properties of chemical elements. Use it for atomic weight, symbols and melting points. | science | What is the atomic weight of tungsten? | How heavy is an atom of tungsten?
equation_solver | Solve equations and systems of equations symbolically. Use it for algebra and maths homework. | science, school | Solve the equation 3x² - 5x = 2 | For which x is 3x squared minus 5x equal to 2?
"""

THINGS = [
    "invoice",
    "contract",
    "receipt",
    "customer",
    "supplier",
    "order",
    "product",
    "warehouse",
    "shipment",
    "employee",
    "shift",
    "timesheet",
    "salary",
    "project",
    "milestone",
    "budget",
    "expense",
    "donation",
    "member",
    "subscription",
    "ticket",
    "survey",
    "question",
    "course",
    "student",
    "grade",
    "lesson",
    "exam",
    "patient",
    "prescription",
    "appointment",
    "vaccination",
    "vehicle",
    "route",
    "driver",
    "machine",
    "sensor",
    "alarm",
    "camera",
    "recording",
    "transcript",
    "podcast",
    "playlist",
    "album",
    "photo",
    "collection",
    "museum",
    "exhibition",
    "sculpture",
    "garden",
    "orchard",
    "harvest",
    "vineyard",
    "beehive",
]
ACTIONS = (
    ("archive", "Move {things} that are closed into the archive."),
    ("rename", "Give {things} names after a fixed scheme."),
    ("export", "Export all {things} to a spreadsheet file."),
    ("import", "Import {things} from a spreadsheet file."),
    ("dedupe", "Find {things} that were entered twice and join them."),
    ("label", "Print labels for {things}."),
    ("report", "Write a monthly report about {things}."),
    ("approve", "Approve {things} that wait for a signature."),
    ("assign", "Assign {things} to people by their workload."),
    ("remind", "Send reminders about overdue {things}."),
    ("forecast", "Forecast the number of {things} for the next quarter."),
    ("audit", "List who changed {things} and when."),
    ("anonymize", "Remove personal details from {things}."),
    ("compare", "Compare {things} of two years."),
    ("rank", "Rank {things} by a score of several criteria."),
    ("validate", "Check {things} for missing fields."),
    ("sync", "Keep {things} in step between two systems."),
    ("tag", "Sort {things} into categories by keywords."),
)


@dataclass(frozen=True, slots=True)
class Target:
    """A tool that somebody asks for, and how."""

    name: str
    description: str
    tags: list[str]
    request: str
    oblique: str


def targets() -> list[Target]:
    """The tools of which one is right for each request."""
    rows = [line.split(" | ") for line in TARGETS.strip().splitlines()]
    return [
        Target(name, description, tags.split(", "), *asked) for name, description, tags, *asked in rows
    ]


def others() -> list[tuple[str, str, list[str]]]:
    """`(name, description, tags)` of tools that nobody asks for here."""
    return [
        (f"{action}_{thing}s", description.format(things=f"{thing}s"), [thing, "office"])
        for action, description in ACTIONS
        for thing in THINGS
    ]
