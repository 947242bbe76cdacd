from __future__ import annotations

import subprocess
import sys

import askline.evaluation


def test_all_is_sorted_and_true() -> None:
    names = askline.evaluation.__all__
    assert names == sorted(names, key=lambda name: (not name.isupper(), name.islower(), name))
    assert all(hasattr(askline.evaluation, name) for name in names)


def test_import_brings_in_no_optional_package() -> None:
    code = (
        "import sys, askline.evaluation;"
        "print(*({'pytrec_eval', 'ir_measures', 'scipy', 'torch', 'rich'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == ""
