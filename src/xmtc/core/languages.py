"""Languages by ISO 639 code and English name. Independent of texts."""

from __future__ import annotations

from xmtc.core.errors import ConfigError, nearest

# code → English name: every language that has a stemmer, a lemmatiser or a list of stop words
LANGUAGES = {
    "ar": "Arabic",
    "ast": "Asturian",
    "bg": "Bulgarian",
    "bs": "Bosnian",
    "ca": "Catalan",
    "cs": "Czech",
    "cy": "Welsh",
    "da": "Danish",
    "de": "German",
    "el": "Greek",
    "en": "English",
    "eo": "Esperanto",
    "es": "Spanish",
    "et": "Estonian",
    "eu": "Basque",
    "fa": "Persian",
    "fi": "Finnish",
    "fr": "French",
    "ga": "Irish",
    "gd": "Scottish Gaelic",
    "gl": "Galician",
    "gv": "Manx",
    "he": "Hebrew",
    "hi": "Hindi",
    "hr": "Croatian",
    "hu": "Hungarian",
    "hy": "Armenian",
    "id": "Indonesian",
    "is": "Icelandic",
    "it": "Italian",
    "ka": "Georgian",
    "la": "Latin",
    "lb": "Luxembourgish",
    "lt": "Lithuanian",
    "lv": "Latvian",
    "mk": "Macedonian",
    "ml": "Malayalam",
    "ms": "Malay",
    "nb": "Norwegian Bokmål",
    "ne": "Nepali",
    "nl": "Dutch",
    "nn": "Norwegian Nynorsk",
    "no": "Norwegian",
    "pl": "Polish",
    "pt": "Portuguese",
    "ro": "Romanian",
    "ru": "Russian",
    "se": "Northern Sami",
    "sk": "Slovak",
    "sl": "Slovenian",
    "sq": "Albanian",
    "sr": "Serbian",
    "st": "Sesotho",
    "sv": "Swedish",
    "sw": "Swahili",
    "ta": "Tamil",
    "tl": "Tagalog",
    "tr": "Turkish",
    "uk": "Ukrainian",
    "yi": "Yiddish",
}
_CODES = {name.casefold(): code for code, name in LANGUAGES.items()}


def language_tag(name: str) -> str:
    """Return the code of a language given by its English name; return anything else in lower case, as a tag."""
    key = name.strip().lower().replace("_", "-")
    return _CODES.get(key, key)


def find_language(name: str) -> str:
    """Return the code of a language given by its ISO 639 code or English name, in upper or lower case."""
    key = name.strip().casefold()
    code = key if key in LANGUAGES else _CODES.get(key)
    if code is None:
        hint = nearest(key, (*LANGUAGES.values(), *LANGUAGES)) or " Give an ISO 639 code or English name: de, German."
        raise ConfigError(f"unknown language {name!r}.{hint}")
    return code
