"""Greetings, gibberish and questions that nobody's notes or talks answer: no hit for them is worth showing."""

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
