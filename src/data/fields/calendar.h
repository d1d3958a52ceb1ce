/* Times of CF conventions (section 4.4): "hours since 2000-01-01 00:00:00" in a calendar. */
#ifndef WEFT_DATA_CALENDAR_H
#define WEFT_DATA_CALENDAR_H

#include "base.h"

typedef enum Calendar {
    /* Julian until 1582-10-04, Gregorian from 1582-10-15 on */
    CALENDAR_STANDARD,
    CALENDAR_PROLEPTIC,
    CALENDAR_JULIAN,
    CALENDAR_NOLEAP,
    CALENDAR_ALL_LEAP,
    CALENDAR_360_DAY,
    CALENDARS
} Calendar;

/* Units of a coordinate: its value v means the time origin + v * unit. Times are in seconds since
 * 1970-01-01 00:00, with the days that the calendar has between that date and the time. */
typedef struct TimeUnits {
    Calendar calendar;
    double unit, origin;
} TimeUnits;
enum { TIME_TEXT = 40 };
/* Returns CF's name of a calendar. */
const char *calendar_name(Calendar calendar);

/* Does the text have the form of a time's units: a word, "since", a date? */
bool time_units_like(const char *units);
/* Reads units and calendar ("": standard). Units without a date, "s", count from 1970-01-01.
 * ERR_DATA: the message says what is wrong, but not in which file. */
Status time_units_read(const char *units, const char *calendar, TimeUnits *time);
/* Reads "2001-12-31" or "2001-12-31 18:00": *begin, the time; *end, the beginning of the next day
 * if there is no clock time, else *begin. False: the text is no date of the calendar. */
bool time_read(Calendar calendar, const char *text, double *begin, double *end);
/* Returns the fraction of the year that has passed at a time, which is in seconds as in TimeUnits:
 * from 0 to below 1. */
double year_fraction(Calendar calendar, double seconds);
/* Writes a time, which is in seconds as in TimeUnits, as 2000-01-31 06:00:00; returns text. */
const char *time_text(Calendar calendar, double seconds, char text[TIME_TEXT]);

#endif
