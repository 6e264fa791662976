"""hybridsim: what would an SSD cache do for your disks?"""

__version__ = "0.1.0"
