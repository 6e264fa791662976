"""The foundation of all other folders; it imports only the standard library and numpy.

codes      numbers for operations, flags, replay modes and kinds of events
cache_parameters
           what the models of caches are built from, in the engine and in the reference
errors     the errors that end a command with one line
arrays     types of arrays, and how they grow
registry   families of classes by name, imported when first used
levels     which counters of a cache are levels, not totals
histogram  latency histograms with a bounded relative error
toml       TOML that users write: places of keys, problems with their line
units      sizes, times, rates and shares, as text and as integers
wording    how figures are worded
suggest    the known word nearest to an unknown one
printable  text from a file or a user, made safe for a terminal
explain    the glossary behind `hybridsim explain`
reading    text files of users, read up to a bound; JSON objects among other lines
writing    output files that are replaced atomically
version    the version, and the folder of the package
"""
