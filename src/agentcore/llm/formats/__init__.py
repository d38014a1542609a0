"""What providers write and read, as plain JSON: functions that know no transport."""
