/* The frame of a report: a page in well-formed XML with its CSS, and escaped text. The first line
 * of the head forbids the browser to fetch anything. */
#include "private.h"

#include "base/utf8.h"

#include <string.h>

const char html_style[] =
    ":root{--a:#0b62c4;--b:#b3430a;--c:#1a7a3c;--d:#8a2be2;--e:#9a6a00;--f:#b0125b;--grid:#d4d4d4;"
    "--back:#fff;--text:#1a1a1a}"
    "@media (prefers-color-scheme:dark){:root{--a:#6cb2ff;--b:#ff9c66;--c:#6fd693;--d:#c9a0ff;"
    "--e:#e6bd4a;--f:#ff84b7;--grid:#444;--back:#161616;--text:#e8e8e8}}"
    "body{font:15px/1.5 system-ui,sans-serif;margin:2em auto;max-width:64em;padding:0 1em;"
    "color:var(--text);background:var(--back)}"
    "h1{font-size:1.5em}h2{font-size:1.15em;margin-top:2em;border-bottom:1px solid var(--grid)}"
    "table{border-collapse:collapse;margin:.5em 0}th,td{text-align:right;padding:.15em .8em;"
    "border-bottom:1px solid "
    "var(--grid)}th:first-child,td:first-child{text-align:left;min-width:8em}"
    "p,h1,figcaption,td:first-child{overflow-wrap:anywhere}"
    "pre{overflow-x:auto;border:1px solid var(--grid);padding:.7em;font-size:13px}"
    "figure{margin:1.2em 0}figcaption{font-weight:600}svg{max-width:100%;height:auto}"
    "svg text{fill:currentColor;font-size:12px}"
    ".grid{stroke:var(--grid)}.l{fill:none;stroke-width:1.7}"
    ".s0{stroke:var(--a)}.s1{stroke:var(--b)}.s2{stroke:var(--c)}.s3{stroke:var(--d)}"
    ".s4{stroke:var(--e)}.s5{stroke:var(--f)}.dash{stroke-dasharray:6 3}.dot{stroke-dasharray:2 3}"
    ".f0{fill:var(--a)}.f1{fill:var(--b)}.f2{fill:var(--c)}.f3{fill:var(--d)}.f4{fill:var(--e)}"
    ".f5{fill:var(--f)}.half{fill-opacity:.55}"
    ".box{fill:var(--a);fill-opacity:.05;stroke:currentColor;stroke-opacity:.55}"
    ".used{fill-opacity:.35}.cell{fill:var(--a)}.slow{fill:none;stroke:var(--b);stroke-width:2.5}"
    "svg text.bold{font-weight:700}svg text.small{font-size:10px}"
    ".schedule .f{fill:#7fb2e5}.schedule .b{fill:#f2a65e}.schedule .w{fill:#8ccf8c}"
    ".schedule .m{fill:#b9ac9f}.schedule .n{fill:#111;font-size:11px;text-anchor:middle}"
    ".schedule .s{text-anchor:end}.schedule .t{font-weight:bold}"
    "@media print{details{display:none}}";

void html_text(FILE *out, const char *text)
{
    const unsigned char *at = (const unsigned char *)text;
    for (int bytes; *at; at += bytes) {
        bytes = utf8_bytes(at);
        if (bytes == 0)
            fputc('?', out);
        else if (*at == '&')
            fputs("&amp;", out);
        else if (*at == '<')
            fputs("&lt;", out);
        else if (*at == '>')
            fputs("&gt;", out);
        else if (*at == '"')
            fputs("&quot;", out);
        else if (*at >= ' ' || *at == '\n' || *at == '\t')
            fwrite(at, 1, (size_t)bytes, out);
        if (bytes == 0) bytes = 1;
    }
}

void svg_text(FILE *out, const char *class, const char *anchor, int x, int y, const char *text)
{
    fprintf(out, "<text class=\"%s\" text-anchor=\"%s\" x=\"%d\" y=\"%d\">", class, anchor, x, y);
    html_text(out, text);
    fputs("</text>\n", out);
}

void html_begin(FILE *out, const char *title)
{
    fputs("<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\"><head>\n"
          "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; style-src "
          "'unsafe-inline'; img-src data:\" />\n<meta charset=\"utf-8\" />\n"
          "<meta name=\"color-scheme\" content=\"light dark\" />\n"
          "<meta name=\"viewport\" content=\"width=device-width\" />\n<title>",
          out);
    html_text(out, title);
    fprintf(out, "</title>\n<style>%s</style></head><body>\n<h1>", html_style);
    html_text(out, title);
    fputs("</h1>\n", out);
}

void html_end(FILE *out)
{
    fputs("</body></html>\n", out);
}

void html_section(FILE *out, const char *heading)
{
    fputs("<section><h2>", out);
    html_text(out, heading);
    fputs("</h2>\n", out);
}

void html_section_end(FILE *out)
{
    fputs("</section>\n", out);
}

void html_details(FILE *out, const char *summary, const char *text)
{
    fputs("<details><summary>", out);
    html_text(out, summary);
    fputs("</summary><pre>", out);
    html_text(out, text);
    fputs("</pre></details>\n", out);
}
