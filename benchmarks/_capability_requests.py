"""A catalog of tools and what people say when they need one: a test set of our own making.

Each line: name | description | tags | a request in other words. The requests were written as people speak, before anything was
measured, and avoid the words of name and description where that is natural.
"""

TARGETS = """
weather_forecast | Look up the weather forecast for a city over the coming days. | weather, travel | Do I need an umbrella in Hamburg tomorrow?
currency_convert | Convert an amount of money from one currency to another at today's exchange rate. | money, travel | How much is 250 dollars in euros right now?
unit_converter | Convert lengths, weights, volumes and temperatures between metric and imperial units. | measures | How many kilometres are 26 miles?
dice_roller | Roll dice with any number of sides and add them up. | games, random | Throw two twenty-sided dice for my dungeon session
password_generator | Generate a random password of a given length. | security | I need something strong and random to protect my new account
qr_code | Make a QR code picture from a text or link. | image | Turn this link into something guests can scan with their phone
bmi_calculator | Compute the body mass index from height and weight. | health | Am I overweight at 1.82 m and 90 kilos?
loan_payment | Compute monthly payments and total interest of a loan or mortgage. | money | What would a 300,000 mortgage over 25 years cost me each month?
tip_splitter | Split a restaurant bill including tip between several people. | money, food | Four of us had dinner for 120, what does each of us owe with 15 percent for the waiter?
time_zone_convert | Convert a time of day from one time zone to another. | time, travel | When it is 3 pm in Tokyo, what time is it for my colleague in Boston?
days_between | Count the days between two dates. | time | How long is it until Christmas?
public_holidays | List the public holidays of a country in a year. | time, travel | Which days are shops closed in Austria next year?
moon_phase | Tell the phase of the moon on a date. | astronomy | Will it be full moon on my birthday?
sunrise_sunset | Compute the times of sunrise and sunset for a place and day. | astronomy, weather | When does it get dark in Oslo on Friday?
air_quality | Look up the present air quality and fine dust of a place. | health, weather | Is the smog bad in Krakow today, can I go jogging?
pollen_count | Look up the pollen load for allergies in a region. | health, weather | My hay fever is terrible, are the birches blooming around here?
tide_table | Look up high and low tide at a coast. | sea, travel | When can we walk across the mudflats at the beach?
train_connections | Find train connections between two stations with departure times. | travel | How do I get by rail from Lyon to Turin this evening?
flight_status | Look up whether a flight is on time, delayed or cancelled. | travel | Has LH 442 landed already?
parcel_tracking | Follow a parcel by its tracking number. | shopping | Where is my delivery with the code 1Z999?
stock_quote | Look up the current price of a share. | money | What is Siemens trading at?
crypto_price | Look up the price of Bitcoin, Ether and other coins. | money | How much is one bitcoin worth?
recipe_search | Find recipes by the ingredients at hand. | food | I have leeks, eggs and cream in the fridge, what can I cook?
nutrition_facts | Look up calories, protein, fat and carbohydrates of foods. | food, health | How many calories does an avocado have?
wine_pairing | Suggest a wine that goes with a dish. | food | What should we drink with the lamb on Sunday?
cooking_timer_plan | Plan when to start each dish so that everything is ready at once. | food, time | The roast, potatoes and beans should all be on the table at seven
spell_check | Check the spelling of a text and list the mistakes. | writing | Did I misspell anything in this letter?
translate_text | Translate a text into another language. | writing, languages | How do you say this in Portuguese?
word_count | Count words, characters and reading time of a text. | writing | Is my essay longer than 2000 words?
summarize_url | Fetch an article and shorten it to its main points. | writing, web | Give me the gist of this newspaper piece
readability_score | Rate how easy a text is to read by the Flesch formula. | writing | Would a twelve-year-old understand this paragraph?
synonym_finder | Find words with the same meaning. | writing, languages | What else could I say instead of "beautiful"?
rhyme_finder | Find words that rhyme with a word. | writing, poetry | I am writing a song and need something that sounds like "heart"
anagram_solver | Find anagrams of letters, for word games. | games, languages | Which words can I lay in Scrabble with R E T A I N S?
crossword_helper | Find words that fit a pattern with gaps, for crosswords. | games, languages | Seven letters, begins with P and the fifth is an L
sudoku_solver | Solve a Sudoku puzzle. | games | Fill in the missing numbers of this nine by nine grid
chess_position | Evaluate a chess position given as FEN and suggest a move. | games | What would a strong player do as White here?
random_picker | Pick a random item from a list, to decide or to draw lots. | random | Choose who has to do the dishes: Ana, Ben or Carl
coin_flip | Flip a coin. | random, games | Heads or tails?
team_splitter | Divide people into random teams of equal size. | random, games | We are twelve for football, make two fair sides
color_convert | Convert colours between hex, RGB and HSL. | design | What is #ff8800 in RGB?
color_palette | Make a palette of colours that go together. | design | Which shades match teal for my living room website?
image_resize | Resize and crop a picture. | image | This photo is far too big to mail, make it 800 pixels wide
exif_reader | Read the camera data and place from a photo. | image | Where and when was this snapshot taken?
pdf_merge | Join several PDF files into one. | documents | Put these three scans into a single document
pdf_extract_text | Extract the text of a PDF file. | documents | I want to copy the words out of this scanned contract
csv_to_json | Convert CSV tables to JSON. | data | Turn this spreadsheet export into something my script can parse as objects
json_formatter | Format and check JSON. | data | Make this minified config legible and tell me whether it is valid
csv_statistics | Compute mean, median and spread of the columns of a CSV table. | data | What are the averages in this table of measurements?
chart_maker | Draw a line, bar or pie chart from numbers. | data, image | Plot my monthly expenses as bars
regex_tester | Test a regular expression against sample texts. | programming | Does this pattern match German phone numbers?
cron_explainer | Explain a cron expression and list its next runs. | programming, time | What does 0 4 * * 1 mean?
base64_codec | Encode and decode base64. | programming | Decode aGVsbG8= for me
hash_text | Compute MD5, SHA-1 and SHA-256 checksums. | programming, security | Give me the fingerprint of this string so that I can verify it
jwt_decoder | Decode a JSON web token and show its claims. | programming, security | When does this bearer token expire?
http_status | Check whether a website is up and how fast it answers. | web | Is my blog down or is it just me?
dns_lookup | Look up the DNS records of a domain. | web | Which mail servers does example.org use?
whois_lookup | Look up who registered a domain and when it expires. | web | Who owns this internet address?
ssl_expiry | Check when the TLS certificate of a site expires. | web, security | Do I have to renew the https of my shop soon?
ip_location | Find where an IP address is located. | web | Which country does 81.2.69.142 come from?
page_links | List all links on a web page and find broken ones. | web | Are there dead references on my homepage?
rss_reader | Read the newest entries of RSS feeds. | web, news | Anything new on the blogs I follow?
news_headlines | Fetch the latest headlines by topic. | news | What happened in the world today?
git_log_summary | Summarise what changed in a Git repository. | programming | What did my team commit last week?
github_issues | List open issues of a GitHub repository. | programming | Which bugs have been reported in our project?
docker_tags | List the available tags of a Docker image. | programming | What is the newest container version of postgres?
package_version | Look up the newest release of a Python package. | programming | Is there an update of numpy?
todo_add | Add a task to the Todoist list. | productivity | Put buying milk on my list of things to do
calendar_add | Create an event in the calendar. | productivity, time | Block Thursday at ten for the dentist
calendar_today | List today's appointments from the calendar. | productivity, time | What is on my agenda?
email_send | Send an e-mail by SMTP. | communication | Write to Sabine that I will be late
sms_send | Send a text message to a phone number. | communication | Text my brother that the train is cancelled
telegram_post | Post a message to a Telegram chat. | communication | Tell the Telegram group that practice is moved
matrix_notify | Send a notification to a Matrix room. | communication | Let the family room on Matrix know dinner is ready
smart_lights | Switch the lights at home on and off and dim them. | home | It is too bright in here, make it cosy
thermostat_set | Set the temperature of the heating. | home | I am freezing, warm up the bedroom
vacuum_start | Start the robot vacuum cleaner. | home | The floor is full of crumbs, have it hoovered
plant_watering | Tell which house plants need water, by when they got it last. | home | Does the ficus have to be watered?
energy_usage | Read the electricity meter and compare with last month. | home, money | Are we using more power than usual?
solar_yield | Estimate the yield of a photovoltaic system for a day. | home, weather | How much will the panels on my roof produce tomorrow?
car_range | Estimate how far the electric car gets with its present charge. | travel, car | Can I make it to Salzburg without stopping at a charger?
fuel_prices | Find cheap petrol stations nearby. | car, money | Where can I fill up the tank without paying a fortune?
parking_finder | Find free parking spaces in a city. | car, travel | Where can I leave the car near the opera?
bike_route | Plan a bicycle route with distance and climb. | travel, sport | I want to cycle to work without too many hills
running_pace | Compute pace, speed and finishing times for runs. | sport | What do I have to run per kilometre for a marathon below four hours?
calories_burned | Estimate the energy used by a sport. | sport, health | How much did I burn off swimming for 45 minutes?
heart_rate_zones | Compute training zones from age and resting pulse. | sport, health | At which pulse should I train for endurance?
sleep_cycles | Suggest when to go to bed for waking up rested. | health, time | I have to get up at six, when should I turn in?
medication_reminder | Tell which medicines are due, by a plan. | health | Have I taken all my pills?
cycle_calendar | Predict the next period and fertile days. | health | When will my next menstruation begin?
baby_names | Suggest first names by origin and first letter. | family | What could we call our daughter, maybe something Nordic?
gift_ideas | Suggest presents by person, occasion and budget. | family, shopping | I have no clue what to get my father for his 70th
book_lookup | Look up a book by title or ISBN. | books | Who wrote The Master and Margarita and when did it come out?
movie_ratings | Look up ratings and cast of a film. | films | Is Paris, Texas worth watching?
song_lyrics | Find the lyrics of a song. | music | What do they actually sing in Life on Mars?
chord_finder | Show how a guitar chord is fingered. | music | Where do I put my fingers for F sharp minor?
metronome_bpm | Compute tempo from taps and note lengths in milliseconds. | music | How long is an eighth note at 96 beats?
constellation_map | Tell which constellations are in the sky tonight. | astronomy | What stars can I see from the balcony at midnight?
periodic_table | Look up properties of chemical elements. | science | How heavy is an atom of tungsten?
equation_solver | Solve equations and systems of equations symbolically. | science, school | For which x is 3x squared minus 5x equal to 2?
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


def targets() -> list[tuple[str, str, list[str], str]]:
    """`(name, description, tags, request)` of each tool that somebody asks for."""
    rows = [line.split(" | ") for line in TARGETS.strip().splitlines()]
    return [(name, description, tags.split(", "), request) for name, description, tags, request in rows]


def others() -> list[tuple[str, str, list[str]]]:
    """`(name, description, tags)` of tools that nobody asks for here."""
    return [
        (f"{action}_{thing}s", description.format(things=f"{thing}s"), [thing, "office"])
        for action, description in ACTIONS
        for thing in THINGS
    ]
