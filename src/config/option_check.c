/* Checks the option table and the kinds of values, at every start of the program. Words of keys are
 * checked by config_words_check (word_lists.c). */
#include "option.h"

#include <string.h>

/* Returns true if the option's key is SECTION.LEAF with a section of the table. */
static bool has_section(const Option *option)
{
    for (int i = 0; i < section_count; ++i)
        if (option_is_in(option, sections[i].name)) return true;
    return false;
}

/* Returns true if an option before this one in the table has the same field. */
static bool shares_field(const Option *option)
{
    for (int i = 0; i < option_count && &options[i] != option; ++i)
        if (options[i].offset == option->offset && strcmp(options[i].key, option->key) != 0)
            return true;
    return false;
}

/* Returns a text that says what is wrong with the option's range; NULL: nothing. */
static const char *range_lacks(const Option *o)
{
    const OptionKind *kind = o->kind;
    if (kind == &kind_int)
        return o->min < o->max || (o->min == o->max && o->min != 0) ? NULL
                                                                    : ".min and .max are not given";
    if (kind == &kind_real || kind == &kind_bytes || kind == &kind_reals || kind == &kind_ints)
        return o->lo < o->hi ? NULL : ".lo and .hi are not given";
    return NULL;
}

Status option_check(const Option *o)
{
    const bool has_field = o->offset != OPTION_NO_FIELD;
    const bool takes_words = o->kind == &kind_enum || o->kind == &kind_word_set;
    const char *lacks = !o->key           ? ".key is not given"
                        : !has_section(o) ? "its section is not in the table of sections"
                        : !o->kind        ? ".kind is not given"
                        : o->offset == 0  ? ".offset is not given"
                        : has_field && o->offset >= sizeof(Config) ? ".offset is outside Config"
                        : has_field && shares_field(o) ? ".offset is that of another key"
                        : !o->default_text             ? ".default_text is not given"
                        : !o->help                     ? ".help is not given"
                        : takes_words && !*option_words(o)
                            ? ".words is not given, and no module has registered words"
                        : o->word_help && !o->words ? ".word_help is given without .words"
                        : o->grouped && !option_is_in(o, "optim")
                            ? ".grouped is for keys of section optim"
                        : o->constant && !o->grouped ? ".constant is given without .grouped"
                                                     : range_lacks(o);
    return row_check("key", o->key, lacks);
}

Status option_kind_check(const OptionKind *kind)
{
    const RowSlot slots[] = {ROW_SLOT(kind, name), ROW_SLOT(kind, read), ROW_SLOT(kind, print)};
    return ROW_SLOTS_CHECK("kind of value", kind->name, slots);
}

Status config_rows_check(void)
{
    for (int i = 0; i < option_count; ++i) {
        TRY(option_check(&options[i]));
        TRY(option_kind_check(options[i].kind));
    }
    return OK;
}
