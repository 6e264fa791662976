"""Latencies of weeks from a thinned capture: its minutes in full, replayed and weighted.

minutes   the minutes of the capture, those kept in full, and the weighted figures of them
contents  what a cache holds at the beginning of a minute, as the sample says
estimate  replays the minutes, and adds them up: what would a cache do, and which one?
"""
