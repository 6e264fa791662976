"""What people write and read, wherever they do.

units    sizes, times, rates and shares, as text and as integers
suggest  the nearest known word to an unknown one
wording  how figures are worded
explain  what printed words mean: the text behind `hybridsim explain`
"""
