"""Word lists of the offline model."""


def word_set(text: str) -> frozenset[str]:
    """The words of the text, which are separated by white space."""
    return frozenset(text.split())


STOP = word_set(
    """
    a about actually all am an and any anymore are at be been but by did do does don't everything for
    from had has have i i'm in instead is it it's its just like me memory mine my no not note notes now
    of on one only or our rather really so some something that the their them there they this thing
    things to too user user's was we were what where which who with you your
    """
)
"""Words that do not tell one note from another."""


ADVERBS = word_set(
    """
    absolutely actually almost also always currently definitely especially generally just longer mainly
    mostly never no now often only probably rarely really recently regularly simply sometimes still
    strictly strongly truly usually
    """
)


UNCHANGED = word_set(
    """
    can can't cannot could couldn't may might must mustn't shall should shouldn't will won't would
    wouldn't used was wasn't had hadn't did didn't went got made bought saw met left became grew lost
    found took came said told read put won broke began knew thought felt heard kept ran sold sent spent
    taught wrote ate drove gave fell forgot chose built caught brought slept spoke stood wore cut quit
    set
    """
)
