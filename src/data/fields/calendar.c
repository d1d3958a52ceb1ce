/* Converts times of the CF conventions, in all calendars of that standard. A day number counts days
 * from 1970-01-01 of the same calendar; day numbers are exact for all years from -9999 to 9999. */
#include "calendar.h"

#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct Date {
    int year, month, day;
} Date;

enum { FIRST_GREGORIAN_YEAR = 1582, FIRST_GREGORIAN_MONTH = 10, FIRST_GREGORIAN_DAY = 15 };

static int64_t floor_divide(int64_t a, int64_t b)
{
    return a / b - (a % b < 0);
}

static bool gregorian_leap(int year)
{
    return year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
}

static bool before_gregorian(Date d)
{
    if (d.year != FIRST_GREGORIAN_YEAR) return d.year < FIRST_GREGORIAN_YEAR;
    if (d.month != FIRST_GREGORIAN_MONTH) return d.month < FIRST_GREGORIAN_MONTH;
    return d.day < FIRST_GREGORIAN_DAY;
}

/* Returns the number of days of a month; month: 1 to 12. */
static int month_days(Calendar calendar, int year, int month)
{
    static const int days[] = {31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31};
    if (calendar == CALENDAR_360_DAY) return 30;
    bool leap = calendar == CALENDAR_ALL_LEAP;
    if (calendar == CALENDAR_JULIAN) leap = year % 4 == 0;
    if (calendar == CALENDAR_PROLEPTIC) leap = gregorian_leap(year);
    if (calendar == CALENDAR_STANDARD)
        leap = year < FIRST_GREGORIAN_YEAR ? year % 4 == 0 : gregorian_leap(year);
    return days[month - 1] + (leap && month == 2);
}

/* Returns the number of days from a fixed day to the beginning of `year`, in a calendar with one
 * rule for leap years. */
static int64_t days_before_year(Calendar calendar, int64_t year)
{
    const int64_t past = year - 1;
    switch (calendar) {
    case CALENDAR_360_DAY:
        return 360 * year;
    case CALENDAR_NOLEAP:
        return 365 * year;
    case CALENDAR_ALL_LEAP:
        return 366 * year;
    case CALENDAR_JULIAN:
        return 365 * year + floor_divide(past, 4);
    default:
        return 365 * year + floor_divide(past, 4) - floor_divide(past, 100) +
               floor_divide(past, 400);
    }
}

static int64_t days_in_rule(Calendar calendar, Date d)
{
    int64_t days = days_before_year(calendar, d.year);
    for (int month = 1; month < d.month; ++month) days += month_days(calendar, d.year, month);
    return days + d.day - 1;
}

/* Returns the constant by which days_in_rule is larger for the Gregorian date of a day than for the
 * Julian date of the same day. */
static int64_t julian_shift(void)
{
    return days_in_rule(CALENDAR_PROLEPTIC, (Date){1582, 10, 15}) -
           days_in_rule(CALENDAR_JULIAN, (Date){1582, 10, 5});
}

static int64_t day_number(Calendar calendar, Date d)
{
    const Date origin = {1970, 1, 1};
    if (calendar != CALENDAR_STANDARD)
        return days_in_rule(calendar, d) - days_in_rule(calendar, origin);
    const int64_t first = days_in_rule(CALENDAR_PROLEPTIC, origin);
    if (before_gregorian(d)) return days_in_rule(CALENDAR_JULIAN, d) + julian_shift() - first;
    return days_in_rule(CALENDAR_PROLEPTIC, d) - first;
}

/* Returns the date of a day number: the inverse of day_number. */
static Date date_of(Calendar calendar, int64_t day)
{
    Date d = {(int)(1970 + floor_divide(day, 366)), 1, 1};
    while (day_number(calendar, d) > day) --d.year;
    while (day_number(calendar, (Date){d.year + 1, 1, 1}) <= day) ++d.year;
    while (d.month < 12 && day_number(calendar, (Date){d.year, d.month + 1, 1}) <= day) ++d.month;
    int64_t rest = day - day_number(calendar, d);
    /* October 1582 has no days 5 to 14 in the standard calendar */
    const bool jump = calendar == CALENDAR_STANDARD && d.year == FIRST_GREGORIAN_YEAR &&
                      d.month == FIRST_GREGORIAN_MONTH && rest > 3;
    d.day += (int)rest + (jump ? 10 : 0);
    return d;
}

/* Returns whether the calendar has the date. A date that it does not have (31 April, or 5 to 14
 * October 1582 in the standard calendar) has the day number of another date. */
static bool is_date(Calendar calendar, Date d)
{
    const Date same = date_of(calendar, day_number(calendar, d));
    return same.year == d.year && same.month == d.month && same.day == d.day;
}

static const char *const calendar_words[] = {
    [CALENDAR_STANDARD] = "standard gregorian",
    [CALENDAR_PROLEPTIC] = "proleptic_gregorian",
    [CALENDAR_JULIAN] = "julian",
    [CALENDAR_NOLEAP] = "noleap 365_day",
    [CALENDAR_ALL_LEAP] = "all_leap 366_day",
    [CALENDAR_360_DAY] = "360_day",
};

/* Returns whether `words`, words with spaces between them, has the word, in any case of letters. */
static bool is_one_of(const char *words, const char *word, size_t length)
{
    for (const char *at = words; *at;) {
        size_t next = strcspn(at, " ");
        if (next == length && strncasecmp(at, word, length) == 0) return true;
        at += next + (at[next] == ' ');
    }
    return false;
}

const char *calendar_name(Calendar calendar)
{
    static const char *const name[] = {
        "standard", "proleptic_gregorian", "julian", "noleap", "all_leap", "360_day"};
    _Static_assert(sizeof name / sizeof *name == CALENDARS, "a name for each calendar");
    return name[calendar];
}

static Status calendar_read(const char *word, Calendar *calendar)
{
    *calendar = CALENDAR_STANDARD;
    if (!*word) return OK;
    for (int i = 0; i < CALENDARS; ++i) {
        *calendar = (Calendar)i;
        if (is_one_of(calendar_words[i], word, strlen(word))) return OK;
    }
    return fail(ERR_DATA,
                "its calendar '%.40s' is none of: standard, gregorian, proleptic_gregorian, "
                "julian, noleap, 365_day, all_leap, 366_day, 360_day",
                word);
}

/* Parses a unit of time; *seconds: its length. Months and years are not accepted, since UDUNITS
 * gives them a fixed length that they have in no calendar. */
static bool unit_read(const char *text, size_t length, double *seconds)
{
    static const struct {
        const char *words;
        double seconds;
    } unit[] = {
        {"milliseconds millisecond msec msecs ms", 1e-3},
        {"seconds second sec secs s", 1},
        {"minutes minute min mins", 60},
        {"hours hour hr hrs h", 3600},
        {"days day d", 86400},
        {"weeks week", 604800},
    };
    for (size_t i = 0; i < sizeof unit / sizeof unit[0]; ++i) {
        if (!is_one_of(unit[i].words, text, length)) continue;
        *seconds = unit[i].seconds;
        return true;
    }
    return false;
}

bool time_units_like(const char *units)
{
    const char *since = strstr(units, " since ");
    return since && since > units;
}

/* Parses the clock time and the zone that may follow a date, "06:30:15.5 +01:00". *seconds: time
 * from the beginning of the date to this time in UTC. Returns false for any other text. */
static bool clock_read(const char *text, double *seconds)
{
    int used = 0, hour = 0, minute = 0, sign;
    double second = 0;
    *seconds = 0;
    while (*text == ' ' || *text == 'T' || *text == 't') ++text;
    if (isdigit((unsigned char)*text)) {
        if (sscanf(text, "%2d%n:%2d%n:%lf%n", &hour, &used, &minute, &used, &second, &used) < 1)
            return false;
        text += used;
    }
    if (hour > 24 || minute > 59 || second < 0 || second >= 61) return false;
    *seconds = hour * 3600.0 + minute * 60.0 + second;
    while (*text == ' ') ++text;
    if (strcasecmp(text, "Z") == 0 || strcasecmp(text, "UTC") == 0 || !*text) return true;
    if (*text != '+' && *text != '-') return false;
    sign = *text == '-' ? -1 : 1;
    hour = minute = used = 0;
    if (sscanf(text + 1, "%2d%n:%2d%n", &hour, &used, &minute, &used) < 1 || text[1 + used])
        return false;
    *seconds -= sign * (hour * 3600.0 + minute * 60.0);
    return true;
}

bool time_read(Calendar calendar, const char *text, double *begin, double *end)
{
    Date d;
    double clock;
    int used = 0;
    if (sscanf(text, "%5d-%2d-%2d%n", &d.year, &d.month, &d.day, &used) != 3 || d.year < -9999 ||
        d.year > 9999 || d.month < 1 || d.month > 12 || d.day < 1 || !is_date(calendar, d) ||
        !clock_read(text + used, &clock))
        return false;
    *begin = (double)day_number(calendar, d) * 86400.0 + clock;
    *end = text[used] ? *begin : *begin + 86400;
    return true;
}

Status time_units_read(const char *units, const char *calendar, TimeUnits *time)
{
    const char *since = strstr(units, " since ");
    double end;
    TRY(calendar_read(calendar, &time->calendar));
    /* units without a date: times since the start of a simulation, here counted from 1970 */
    time->origin = 0;
    if (!since && unit_read(units, strlen(units), &time->unit)) return OK;
    if (!since || !unit_read(units, (size_t)(since - units), &time->unit))
        return fail(ERR_DATA,
                    "its units '%.80s' are not seconds, minutes, hours, days or weeks since a date",
                    units);
    const char *text = since + strlen(" since ");
    while (*text == ' ') ++text;
    if (time_read(time->calendar, text, &time->origin, &end)) return OK;
    return fail(ERR_DATA, "its units '%.80s' have no date of its calendar, as 2000-01-31", units);
}

double year_fraction(Calendar calendar, double seconds)
{
    const int64_t day = (int64_t)floor(seconds / 86400);
    const int year = date_of(calendar, day).year;
    const int64_t begin = day_number(calendar, (Date){year, 1, 1});
    const int64_t end = day_number(calendar, (Date){year + 1, 1, 1});
    return (seconds / 86400 - (double)begin) / (double)(end - begin);
}

const char *time_text(Calendar calendar, double seconds, char text[TIME_TEXT])
{
    const double whole = floor(seconds + 0.5);
    if (!(fabs(whole) < 2e11)) {
        snprintf(text, TIME_TEXT, "%g s", seconds);
        return text;
    }
    const int64_t all = (int64_t)whole, day = floor_divide(all, 86400), rest = all - day * 86400;
    const Date d = date_of(calendar, day);
    snprintf(text, TIME_TEXT, "%04d-%02d-%02d %02d:%02d:%02d", d.year, d.month, d.day,
             (int)(rest / 3600), (int)(rest / 60 % 60), (int)(rest % 60));
    return text;
}
