/* Converts times of the CF conventions (section 4.4): numbers of "hours since 2000-01-01 00:00:00",
 * for example, in one of the conventions' calendars. */
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
 * 1970-01-01 00:00 of the same calendar, in which each day has 86400 seconds. */
typedef struct TimeUnits {
    Calendar calendar;
    /* length of the unit in seconds */
    double unit;
    /* time that the value 0 means */
    double origin;
} TimeUnits;
/* bytes of the text of time_text, with the final zero */
enum { TIME_TEXT = 40 };
/* Returns CF's name of a calendar. */
const char *calendar_name(Calendar calendar);

/* Returns whether `units` contains " since " after its beginning, as the units of a time do. */
bool time_units_like(const char *units);
/* Parses the units and the calendar of a coordinate of time. calendar "": the standard calendar.
 * Units without a date, such as "s", count from 1970-01-01. ERR_DATA: the message says what is
 * wrong, but not in which file. */
Status time_units_read(const char *units, const char *calendar, TimeUnits *time);
/* Parses "2001-12-31" or "2001-12-31 18:00". *begin: the time. *end: the beginning of the next day
 * if the text has nothing after the date, else *begin. Returns false if the text has no date of the
 * calendar, or if the text after the date is no clock time. */
bool time_read(Calendar calendar, const char *text, double *begin, double *end);
/* Returns the fraction of the year that has passed at a time (TimeUnits), 0 or more and below 1. */
double year_fraction(Calendar calendar, double seconds);
/* Writes a time (TimeUnits), rounded to seconds, as 2000-01-31 06:00:00. A time that is 2e11 s or
 * more from 1970 is written as a number of seconds. Returns `text`. */
const char *time_text(Calendar calendar, double seconds, char text[TIME_TEXT]);

#endif
