"""The rows of a terminal that can still be written over, and the cursor among them.

A row that scrolls off the top is final. Lines are as long as they are, whatever the terminal's width: a reader of text
needs no wrapping.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Final, final

# The row that is being written is given out in parts when it gets longer; a part can't be written over any more.
_LONGEST_ROW: Final = 65536


@final
class ScreenBuffer:
    """So many rows at most, and the cursor. Rows and columns count from 0."""

    def __init__(
        self, width: int, height: int, keep: Callable[[str], None], finish: Callable[[str], None] | None = None
    ) -> None:
        """Make it empty. `finish` takes the text of rows that become final, and `keep` what was not reported of it yet."""
        self._width = width
        self._height = height
        self._keep = keep
        self._finish = finish
        self._rows = [""]
        self._row = 0
        self._column = 0
        self._saved = (0, 0)
        self._reported: list[str] = []

    def take(self) -> str:
        """Return the rows that were not reported yet, from the first that has changed."""
        before, self._reported = self._reported, list(self._rows)
        last = len(before) - 1
        for number, row in enumerate(self._rows):
            if number > last or row != before[number]:
                already = len(before[number]) if number == last and row.startswith(before[number]) else 0
                return "\n".join([row[already:], *self._rows[number + 1 :]])
            if number == last and number + 1 < len(self._rows):
                return "\n".join(["", *self._rows[number + 1 :]])
        return ""

    def hold_back(self, count: int) -> None:
        """Take so many characters at the end for not reported, or all rows that there are."""
        while self._reported and count > len(self._reported[-1]):
            count -= len(self._reported.pop()) + 1
        if self._reported and count > 0:
            self._reported[-1] = self._reported[-1][:-count]

    def end(self) -> None:
        """Make all rows final for `finish`."""
        if self._finish is not None:
            self._finish("\n".join(self._rows))

    def put(self, text: str) -> None:
        """Write text at the cursor; line ends in it lead to the beginning of the next row."""
        first, *others = text.split("\n")
        self._write(first)
        if others and self._row == len(self._rows) - 1:
            self._rows += others
            self._row, self._column = len(self._rows) - 1, len(others[-1])
            self._scroll()
        else:
            for line in others:
                self.next_row()
                self._write(line)
        if len(self._rows[self._row]) > _LONGEST_ROW:
            self._give_out_row()

    def repeat(self, count: int) -> None:
        """Write the character before the cursor again."""
        self.put(self._rows[self._row][: self._column][-1:] * min(count, self._width))

    def next_row(self) -> None:
        """Go to the beginning of the next row."""
        self._column = 0
        self._row += 1
        if self._row == len(self._rows):
            self._rows.append("")
            self._scroll()

    def move_to(self, row: int | None, column: int | None) -> None:
        """Go to a place; None stays where it is."""
        if row is not None:
            self._row = min(max(row, 0), self._height - 1)
        if column is not None:
            # To the right no further than the terminal goes, or the row did: a few bytes must not make a long row.
            self._column = min(max(column, 0), max(self._width - 1, self._column))
        self._rows += [""] * (self._row + 1 - len(self._rows))

    def move_by(self, rows: int, columns: int) -> None:
        """Go up or down, left or right."""
        self.move_to(self._row + rows, self._column + columns)

    def move_rows(self, rows: int) -> None:
        """Go up or down, to the beginning of the row."""
        self.move_to(self._row + rows, 0)

    def save_place(self) -> None:
        """Remember where the cursor is."""
        self._saved = (self._row, self._column)

    def return_to_place(self) -> None:
        """Go where the cursor was when it was saved."""
        self.move_to(*self._saved)

    def erase_in_row(self, how: int) -> None:
        """Erase from the cursor on (0), up to it (1), or the row (2)."""
        row = self._rows[self._row]
        match how:
            case 0:
                self._rows[self._row] = row[: self._column]
            case 1:
                self._rows[self._row] = " " * min(self._column + 1, len(row)) + row[self._column + 1 :]
            case _:
                self._rows[self._row] = ""

    def erase(self, how: int) -> None:
        """Erase from the cursor on (0), up to it (1), or start on an empty page (2)."""
        match how:
            case 0:
                self.erase_in_row(0)
                del self._rows[self._row + 1 :]
            case 1:
                self.erase_in_row(1)
                self._rows[: self._row] = [""] * self._row
            case 2:
                self.clear()
            case _:
                pass  # what has scrolled away is kept

    def clear(self) -> None:
        """Start on an empty page. What stood there is not lost: it was output like any other."""
        rows = self._rows
        while rows and not rows[-1]:
            rows.pop()
        self._finish_rows(rows)
        self._rows, self._row, self._column, self._reported = [""], 0, 0, []

    def insert_blanks(self, count: int) -> None:
        """Push what follows the cursor to the right."""
        row, column = self._rows[self._row], self._column
        if len(row) < _LONGEST_ROW:
            self._rows[self._row] = row[:column] + " " * min(count, self._width) + row[column:]

    def delete(self, count: int) -> None:
        """Remove what follows the cursor; what follows that comes closer."""
        row, column = self._rows[self._row], self._column
        self._rows[self._row] = row[:column] + row[column + count :]

    def blank(self, count: int) -> None:
        """Put spaces in the place of what follows the cursor."""
        row, column = self._rows[self._row], self._column
        self._rows[self._row] = row[:column] + " " * len(row[column : column + count]) + row[column + count :]

    def insert_rows(self, count: int) -> None:
        """Push the cursor's row and those below it down."""
        self._rows[self._row : self._row] = [""] * min(count, self._height)
        del self._rows[self._height :]

    def delete_rows(self, count: int) -> None:
        """Remove the cursor's row and those below it."""
        del self._rows[self._row : self._row + count]
        self.move_by(0, 0)

    def _write(self, text: str) -> None:
        if not text:
            return
        row, column = self._rows[self._row], self._column
        if column == len(row):
            self._rows[self._row] = row + text
        else:
            self._rows[self._row] = row[:column].ljust(column) + text + row[column + len(text) :]
        self._column += len(text)

    def _scroll(self) -> None:
        over = len(self._rows) - self._height
        if over > 0:
            self._finish_rows(self._rows[:over])
            del self._rows[:over]
            self._row -= over

    def _finish_rows(self, rows: list[str]) -> None:
        if self._finish is not None and rows:
            self._finish("\n".join([*rows, ""]))
        number = 0
        while self._reported and number < len(rows):
            before, row = self._reported.pop(0), rows[number]
            number += 1
            if self._reported and row == before:
                continue
            # The last reported row was reported without its line end.
            already = len(before) if not self._reported and row.startswith(before) else 0
            self._keep(row[already:] + "\n")
        if number < len(rows):
            self._keep("\n".join(rows[number:]) + "\n")

    def _give_out_row(self) -> None:
        self._finish_rows(self._rows[: self._row])
        row = self._rows[self._row]
        already = len(self._reported[0]) if self._reported and row.startswith(self._reported[0]) else 0
        self._keep(row[already:])
        if self._finish is not None:
            self._finish(row)
        self._rows = ["", *self._rows[self._row + 1 :]]
        self._row, self._column, self._reported = 0, 0, []
