/* Reads the elements of a small XML file one after the other. */
#ifndef WEFT_DATA_XML_SCAN_H
#define WEFT_DATA_XML_SCAN_H

#include "base.h"

enum { XML_PATH = 256, XML_TEXT = 1024 };
typedef struct XmlScan {
    /* borrowed, set by the caller: name of the file, for messages; its text, which ends with a zero
     * byte; the next byte to read, at first the first of the text */
    const char *name, *text, *at;
    /* names of the open elements, "annotation/object/name". After xml_scan_next the last of them is
     * the element that has just ended. */
    char path[XML_PATH];
    /* text between the last tag and the end of the element, without blanks around it, entities
     * replaced */
    char value[XML_TEXT];
    /* true: the last element of path has ended; the next call removes it */
    bool pop;
} XmlScan;
/* Reads to the next end of an element. *more true: path and value are those of this element; false:
 * the file has ended. ERR_DATA with file and byte: the text is not well-formed, is too long or too
 * deep, or has a "<!" other than a comment (DOCTYPE, CDATA). "<?...?>" is skipped. */
Status xml_scan_next(XmlScan *scan, bool *more);

#endif
