/* Reads the elements of a small XML file one after the other. */
#ifndef WEFT_DATA_XML_SCAN_H
#define WEFT_DATA_XML_SCAN_H

#include "base.h"

enum { XML_PATH = 256, XML_TEXT = 1024 };
typedef struct XmlScan {
    /* borrowed: name of the file; its text, which ends with a zero byte; the next byte */
    const char *name, *text, *at;
    /* elements that are open, "annotation/object/name"; at the end of an element still with it */
    char path[XML_PATH];
    /* text before the end of the element, without blanks around it */
    char value[XML_TEXT];
    /* remove the last element of path, which has ended */
    bool pop;
} XmlScan;
/* Reads to the end of the next element: *more: path and value are its own. ERR_DATA with file and
 * byte: not well-formed; declarations and CDATA are not read. */
Status xml_scan_next(XmlScan *scan, bool *more);

#endif
