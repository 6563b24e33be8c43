"""Which mouse reports a program asked for: the library tells what it would send."""

from pyghostty import ffi, lib
from pyghostty.core import init_sized

from terminal_host.host.ghostty.library import Native, Vt

_PRESS = lib.GHOSTTY_MOUSE_ACTION_PRESS
_RELEASE = lib.GHOSTTY_MOUSE_ACTION_RELEASE
_MOTION = lib.GHOSTTY_MOUSE_ACTION_MOTION
_LEFT = lib.GHOSTTY_MOUSE_BUTTON_LEFT
_REPORT_BYTES = 64
# From the most to the least: an action, with which button, whether one is down.
_PROBES = (
    (1003, _MOTION, None, False),
    (1002, _MOTION, _LEFT, True),
    (1000, _RELEASE, _LEFT, False),
    (9, _PRESS, _LEFT, True),
)
_SGR, _SGR_PIXELS = 1006, 1016


def mouse_modes(vt: Vt) -> tuple[int, ...]:
    """Return the modes of protocol and encoding that are in force."""
    protocol = _protocol(vt)
    encoding = next((n for n in (_SGR_PIXELS, _SGR) if vt.mode(n)), None)
    return tuple(mode for mode in (protocol, encoding) if mode is not None)


def _protocol(vt: Vt) -> int | None:
    encoder = ffi.new("GhosttyMouseEncoder*")
    event = ffi.new("GhosttyMouseEvent*")
    lib.ghostty_mouse_encoder_new(ffi.NULL, encoder)
    lib.ghostty_mouse_event_new(ffi.NULL, event)
    try:
        lib.ghostty_mouse_encoder_setopt_from_terminal(encoder[0], vt.pointer)
        size = init_sized("GhosttyMouseEncoderSize")
        size.screen_width = size.screen_height = 8000
        size.cell_width, size.cell_height = 8, 16
        option = lib.GHOSTTY_MOUSE_ENCODER_OPT_SIZE
        lib.ghostty_mouse_encoder_setopt(encoder[0], option, size)
        for mode, action, button, down in _PROBES:
            if _reports(encoder[0], event[0], action, button, down=down):
                return mode
        return None
    finally:
        lib.ghostty_mouse_event_free(event[0])
        lib.ghostty_mouse_encoder_free(encoder[0])


def _reports(
    encoder: Native, event: Native, action: int, button: int | None, *, down: bool
) -> bool:
    lib.ghostty_mouse_event_set_action(event, action)
    if button is None:
        lib.ghostty_mouse_event_clear_button(event)
    else:
        lib.ghostty_mouse_event_set_button(event, button)
    lib.ghostty_mouse_event_set_position(event, {"x": 500.0, "y": 500.0})
    option = lib.GHOSTTY_MOUSE_ENCODER_OPT_ANY_BUTTON_PRESSED
    lib.ghostty_mouse_encoder_setopt(encoder, option, ffi.new("bool*", down))
    buffer, count = ffi.new("char[]", _REPORT_BYTES), ffi.new("size_t*")
    encode = lib.ghostty_mouse_encoder_encode
    failed = encode(encoder, event, buffer, _REPORT_BYTES, count)
    return not failed and bool(count[0])
