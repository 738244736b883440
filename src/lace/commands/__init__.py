"""What the commands of ``lace`` do, one file each; they take parsed arguments and print for people, or one JSON object.

Nothing heavy is imported before a command runs: ``lace --help`` answers at once.
"""

from .bench import bench as bench
from .edit import edit as edit
from .explain import explain as explain
from .import_ import import_ as import_
from .learn import learn as learn
from .lists import attributes as attributes
from .lists import models as models
from .sample import sample as sample
from .show import show as show
