"""A model's tokenizer.json by the model's name on the Hugging Face Hub.

What lies in the local cache is used without asking anybody; else it is downloaded, once, into that cache. Both are
huggingface_hub's doing, and so are its variables: HF_HOME and HF_HUB_CACHE say where the cache is, HF_HUB_OFFLINE forbids the
download, HF_TOKEN opens what is not open to all, HF_ENDPOINT names another hub.
"""

from __future__ import annotations

import re
from pathlib import Path

from inferometer.workload.tokenizer_file import FILE, refused

_ID = re.compile(r"([A-Za-z0-9][\w.-]*/[A-Za-z0-9][\w.-]*)(?:@([A-Za-z0-9][\w./-]*))?")
_PATIENCE_S = 10.0


def hub_id(name: str) -> tuple[str, str | None] | None:
    """`org/name` and the revision behind an `@` (a branch, a tag or a commit), or None if it is not spelled as an id."""
    found = _ID.fullmatch(name)
    return None if found is None or len(name) > 250 or ".." in name else (found[1], found[2])


def held(name: str, revision: str | None) -> tuple[Path, str] | None:
    """The file in the local cache, and the commit it is of; None where it is not there. Nobody is asked."""
    from huggingface_hub import try_to_load_from_cache

    found = try_to_load_from_cache(name, FILE, revision=revision)
    # .../models--org--name/snapshots/COMMIT/tokenizer.json
    return (Path(found), Path(found).parent.name) if isinstance(found, str) else None


def fetched(name: str, revision: str | None) -> tuple[Path, str]:
    """The file in the local cache, and the commit it is of. Raises PlanError where it is not there and cannot be had."""
    from huggingface_hub import get_hf_file_metadata, hf_hub_download, hf_hub_url

    at = f"{name}@{revision}" if revision else name
    try:
        if (cached := held(name, revision)) is not None:
            return cached
        # Fails at once where there is nothing to be had; the download would try again for half a minute.
        get_hf_file_metadata(hf_hub_url(name, FILE, revision=revision), timeout=_PATIENCE_S)
        file = Path(hf_hub_download(name, FILE, revision=revision))
    except Exception as cause:  # its own, httpx's or OSError: the file is not to be had
        raise refused(f"{at}: {_why(cause)}; or save the model's own {FILE} and give its path") from cause
    return file, file.parent.name


def _why(cause: Exception) -> str:
    from huggingface_hub import constants, errors

    if isinstance(cause, errors.GatedRepoError):
        return "the model is not open to all: accept its terms on Hugging Face, and set HF_TOKEN to a token of yours"
    if isinstance(cause, errors.RepositoryNotFoundError):
        return "Hugging Face knows no such model, or shows it to nobody without a token (HF_TOKEN): is the name right?"
    if isinstance(cause, errors.RevisionNotFoundError):
        return "the model has no such revision: give a branch, a tag or a commit of it behind the @"
    if isinstance(cause, errors.EntryNotFoundError) and not isinstance(cause, errors.LocalEntryNotFoundError):
        return f"the model has no {FILE}"
    if constants.HF_HUB_OFFLINE:
        return "it is not in the local cache, and HF_HUB_OFFLINE forbids the download"
    return "it is no path that exists, not in the local Hugging Face cache, and cannot be downloaded (is there a network?)"
