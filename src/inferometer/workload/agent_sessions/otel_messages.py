"""Messages in the attributes of OpenTelemetry's GenAI spans, as messages of OpenAI's chat.

`gen_ai.input.messages` and its kin are structured values, or the same as JSON in a string. What a part of another type holds
cannot be sent, and is refused; reasoning is left out, as clients do.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from inferometer.foreign_json import NotJSON, check_depth, check_size
from inferometer.workload.agent_sessions.foreign_values import Fault, Object, check_messages

Attributes = dict[str, Any]
INPUT, OUTPUT = "gen_ai.input.messages", "gen_ai.output.messages"
SYSTEM, TOOLS = "gen_ai.system_instructions", "gen_ai.tool.definitions"
_DEEPEST = 50
_LEFT_OUT = ("reasoning", "thinking")


def attributes(found: Sequence[Any]) -> Attributes:
    """OTLP's list of keys and values as a dictionary. Raises Fault."""
    values: Attributes = {}
    for one in found:
        if not isinstance(one, dict) or not isinstance(one.get("key"), str):
            raise Fault("attributes", "must be objects with a key and a value")
        values[one["key"]] = _value(one.get("value"), _DEEPEST)
    return values


def _value(value: object, left: int) -> Any:
    if not isinstance(value, dict) or not left:
        return None
    for kind, inner in value.items():
        if kind == "intValue":
            text = str(inner)
            return (
                int(text)
                if len(text) < 20 and text.lstrip("-").isascii() and text.lstrip("-").isdigit()
                else None
            )
        if kind == "arrayValue" and isinstance(inner, dict):
            items = inner.get("values")
            return [_value(one, left - 1) for one in items] if isinstance(items, list) else []
        if kind == "kvlistValue" and isinstance(inner, dict):
            items = inner.get("values")
            pairs = items if isinstance(items, list) else []
            return {one["key"]: _value(one.get("value"), left - 1) for one in pairs if _is_pair(one)}
        if kind in ("stringValue", "boolValue", "doubleValue"):
            return inner
    return None


def _is_pair(one: object) -> bool:
    return isinstance(one, dict) and isinstance(one.get("key"), str)


def _structured(values: Attributes, name: str) -> list[Any] | None:
    """A list in an attribute, plain or as JSON. Raises Fault."""
    value = values.get(name)
    if isinstance(value, str):
        try:
            check_size(value)
            value = msgspec.json.decode(value)
            check_depth(value)
        except (msgspec.MsgspecError, NotJSON, RecursionError, UnicodeError):
            raise Fault(name, "is no JSON that can be read; was it cut off where it was recorded?") from None
    if value is not None and not isinstance(value, list):
        raise Fault(name, "must be a list")
    return value


def input_messages(values: Attributes) -> list[Object]:
    """The messages of a request, its system instructions first. Raises Fault."""
    found = _structured(values, INPUT)
    if not found:
        words = "is missing: record spans with the content of their messages; without it nothing can be sent again"
        raise Fault(INPUT, words)
    messages: list[Object] = []
    system = _structured(values, SYSTEM)
    if system:
        messages.append({"role": "system", "content": _content(system, SYSTEM)})
    for at, one in enumerate(found):
        messages += _messages(one, f"{INPUT}[{at}]")
    check_messages(messages, INPUT)
    return messages


def reply(values: Attributes) -> Object | None:
    """The recorded answer, the first where there are several; None: there is none. Raises Fault."""
    found = _structured(values, OUTPUT)
    if not found:
        return None
    messages = _messages(found[0], f"{OUTPUT}[0]")
    if len(messages) != 1 or messages[0]["role"] != "assistant":
        return None
    if not messages[0]["content"] and not messages[0].get("tool_calls"):
        return None
    check_messages(messages, OUTPUT)
    return messages[0]


def tools(values: Attributes) -> list[Object]:
    """The definitions of tools, as a body has them. Raises Fault."""
    found: list[Object] = []
    for one in _structured(values, TOOLS) or ():
        if not isinstance(one, dict) or one.get("type", "function") != "function":
            raise Fault(TOOLS, "must be functions: a provider's own tools cannot be called again")
        if isinstance(one.get("function"), dict):
            found.append(one)
            continue
        kept = {key: one[key] for key in ("name", "description", "parameters") if one.get(key) is not None}
        if not isinstance(kept.get("name"), str):
            raise Fault(TOOLS, "must have names")
        found.append({"type": "function", "function": kept})
    return found


def _messages(one: object, field: str) -> list[Object]:
    """A recorded message, which may hold the results of several tools. Raises Fault."""
    if not isinstance(one, dict) or not isinstance(one.get("parts"), list):
        raise Fault(field, "must be a message with a role and parts")
    results: list[Object] = []
    calls: list[Object] = []
    rest: list[Any] = []
    for at, part in enumerate(one["parts"]):
        kind = part.get("type") if isinstance(part, dict) else None
        if kind == "tool_call_response":
            results.append(_result(part, f"{field}.parts[{at}]"))
        elif kind == "tool_call":
            calls.append(_call(part, f"{field}.parts[{at}]"))
        elif kind not in _LEFT_OUT:
            rest.append(part)
    if results and not rest and not calls:
        return results
    message: Object = {"role": one.get("role"), "content": _content(rest, field)}
    if calls:
        message["content"] = message["content"] or None
        message["tool_calls"] = calls
    return [*results, message]


def _result(part: Object, field: str) -> Object:
    value = part.get("response", part.get("result"))
    if not isinstance(part.get("id"), str) or value is None:
        raise Fault(field, "must have an id and a response")
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return {"role": "tool", "tool_call_id": part["id"], "content": text}


def _call(part: Object, field: str) -> Object:
    name, arguments = part.get("name"), part.get("arguments")
    if not isinstance(part.get("id"), str) or not isinstance(name, str):
        raise Fault(field, "must have an id and a name")
    text = (
        arguments
        if isinstance(arguments, str)
        else msgspec.json.encode({} if arguments is None else arguments).decode()
    )
    return {"id": part["id"], "type": "function", "function": {"name": name, "arguments": text}}


def _content(parts: Sequence[Any], field: str) -> str | list[Object]:
    """The text of parts, or where there are images the list of both. Raises Fault."""
    found = [_part(part, f"{field}.parts[{at}]") for at, part in enumerate(parts)]
    if all(one["type"] == "text" for one in found):
        return "\n".join(one["text"] for one in found)
    return found


def _part(part: object, field: str) -> Object:
    kind = part.get("type") if isinstance(part, dict) else None
    if isinstance(part, dict) and kind == "text" and isinstance(part.get("content"), str):
        return {"type": "text", "text": part["content"]}
    mime = part.get("mime_type") if isinstance(part, dict) else None
    if isinstance(part, dict) and (part.get("modality") == "image" or str(mime).startswith("image/")):
        if isinstance(part.get("uri"), str) and part["uri"].startswith(("https://", "http://", "data:")):
            return {"type": "image_url", "image_url": {"url": part["uri"]}}
        if kind == "blob" and isinstance(part.get("content"), str):
            url = f"data:{mime or 'image/png'};base64,{part['content']}"
            return {"type": "image_url", "image_url": {"url": url}}
    raise Fault(field, "must be text, a tool's call or response, or an image with its data or address")
