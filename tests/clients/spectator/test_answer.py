from textual.widgets import TextArea

from clients.spectator.widgets.answer import Speech
from games.spaces import Text


def test_a_speech_can_be_drawn_before_its_style_sheet_has_come() -> None:
    # Screens draw whenever a timer tells them to, also what was mounted a moment ago.
    for part in sorted(TextArea.COMPONENT_CLASSES):
        assert Speech(Text(max_chars=20)).get_component_styles(part).color is not None
