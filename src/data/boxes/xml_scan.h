/* Reads the elements of a small XML file one after the other. */
#ifndef WEFT_DATA_XML_SCAN_H
#define WEFT_DATA_XML_SCAN_H

#include "base.h"

enum {
    /* bytes of XmlScan.path */
    XML_PATH = 256,
    /* bytes of XmlScan.value */
    XML_TEXT = 1024
};
/* A file that is being read. The caller sets the first three members. */
typedef struct XmlScan {
    /* name of the file for messages; borrowed */
    const char *name;
    /* the file's text, which ends with a zero byte; borrowed */
    const char *text;
    /* next byte to read; at first `text` */
    const char *at;
    /* names of the open elements, "annotation/object/name". After xml_scan_next, the last name is
     * that of the element that has just ended. */
    char path[XML_PATH];
    /* text between the last tag and the end of the element, without blanks around it, and with
     * entities replaced by their characters */
    char value[XML_TEXT];
    /* true: the last element of `path` has ended; the next call removes it */
    bool pop;
} XmlScan;
/* Reads to the next end of an element. *more true: `path` and `value` are those of this element;
 * false: the file has ended. ERR_DATA with file and byte: the XML is not well-formed, an element's
 * text is too long, elements are nested too deeply, or there is a "<!" that is not a comment
 * (DOCTYPE, CDATA). "<?...?>" is skipped. */
Status xml_scan_next(XmlScan *scan, bool *more);

#endif
