#!/usr/bin/env python3
"""Makes tests/image/pictures: small pictures of every odd kind, and what Pillow decodes them to.

usage: golden_images.py            needs Pillow and numpy; run once, the files are kept in the repository

golden.txt has a line for each: file, width, height, EXIF orientation, where its RGB pixels begin in
golden.rgb. One differs from Pillow on purpose: 16-bit grey is divided by 257, where Pillow clips.
"""
import io
import os
import struct
import zlib

import numpy
from PIL import Image, ImageOps

OUT = os.path.join(os.path.dirname(__file__), "..", "tests", "image", "pictures")
WIDTH, HEIGHT = 21, 18


def picture(channels, width=WIDTH, height=HEIGHT):
    """Waves and noise, each channel another."""
    rng = numpy.random.default_rng(channels)
    y, x = numpy.mgrid[0:height, 0:width]
    planes = [127 + 90 * numpy.sin(x / (2.0 + c) + c) * numpy.cos(y / (3.0 + c)) for c in range(channels)]
    values = numpy.stack(planes, -1) + rng.integers(-30, 30, (height, width, channels))
    return numpy.clip(values, 0, 255).astype(numpy.uint8)


def save(image, kind, **how):
    out = io.BytesIO()
    image.save(out, kind, **how)
    return out.getvalue()


def exif(orientation):
    """Big-endian for odd ones, so that both orders are there."""
    order = ">" if orientation % 2 else "<"
    entry = struct.pack(order + "HHIHH", 0x0112, 3, 1, orientation, 0)
    other = struct.pack(order + "HHII", 0x0100, 4, 1, 9)
    head = (b"MM\0*" if order == ">" else b"II*\0") + struct.pack(order + "I", 8)
    return b"Exif\0\0" + head + struct.pack(order + "H", 2) + other + entry + bytes(4)


def chunk(name, data):
    return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))


def png(width, height, bits, colour, rows, interlace=0, before=b""):
    """rows: bytes of each row, packed. Only what Pillow does not write itself."""
    raw = b"".join(b"\0" + row for row in rows)
    return (b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, bits, colour, 0, 0, interlace))
            + before + chunk(b"IDAT", zlib.compress(raw, 9)) + chunk(b"IEND", b""))


def adam7(pixels):
    """Rows of the seven passes of an 8-bit picture."""
    rows = []
    for x0, y0, dx, dy in ((0, 0, 8, 8), (4, 0, 8, 8), (0, 4, 4, 8), (2, 0, 4, 4), (0, 2, 2, 4), (1, 0, 2, 2), (0, 1, 1, 2)):
        rows += [row.tobytes() for row in pixels[y0::dy, x0::dx] if row.size]
    return rows


def strip_adobe(data):
    """A JPEG without its APP14 segment: four channels that nobody says anything about."""
    at = data.index(b"\xff\xee")
    return data[:at] + data[at + 2 + struct.unpack(">H", data[at + 2:at + 4])[0]:]


def packed(values, bits):
    """(H,W) below 2**bits -> bytes of rows, the first pixel in the highest bits."""
    rows = []
    for row in values:
        text = "".join(format(v, "0%db" % bits) for v in row)
        text += "0" * (-len(text) % 8)
        rows.append(bytes(int(text[i:i + 8], 2) for i in range(0, len(text), 8)))
    return rows


def riff_exif(data, tiff):
    """A WebP with an EXIF chunk: Pillow's writer makes the VP8X form of it."""
    return save(Image.open(io.BytesIO(data)), "WEBP", lossless=True, exif=tiff)


def files():
    rgb, grey = Image.fromarray(picture(3)), Image.fromarray(picture(1)[:, :, 0])
    rgba, cmyk = Image.fromarray(picture(4)), Image.fromarray(picture(4), "CMYK")
    la = Image.merge("LA", (grey, Image.fromarray(picture(2)[:, :, 1])))
    yield "plain.jpg", save(rgb, "JPEG", quality=90)
    yield "444.jpg", save(rgb, "JPEG", quality=95, subsampling=0)
    yield "422.jpg", save(rgb, "JPEG", quality=70, subsampling=1)
    yield "progressive.jpg", save(rgb, "JPEG", progressive=True)
    yield "restart.jpg", save(rgb, "JPEG", restart_marker_blocks=1)
    yield "grey.jpg", save(grey, "JPEG")
    yield "rgb.jpg", save(rgb, "JPEG", keep_rgb=True)
    yield "cmyk.jpg", save(cmyk, "JPEG", quality=90)
    yield "cmyk_no_adobe.jpg", strip_adobe(save(cmyk, "JPEG", quality=90))
    for o in range(1, 9):
        yield "exif%d.jpg" % o, save(rgb.crop((0, 0, 12, 9)), "JPEG", exif=exif(o), quality=60)
    yield "plain.png", save(rgb, "PNG")
    yield "png.JPEG", save(rgb.crop((1, 1, 9, 8)), "PNG")
    yield "grey.png", save(grey, "PNG")
    yield "alpha.png", save(rgba, "PNG")
    yield "grey_alpha.png", save(la, "PNG")
    yield "palette.png", save(rgb.quantize(20), "PNG")
    yield "palette_alpha.png", save(rgb.quantize(6), "PNG", transparency=2)
    few = picture(1)[:, :, 0]
    for bits in (1, 2, 4):
        yield "grey%d.png" % bits, png(WIDTH, HEIGHT, bits, 0, packed(few >> (8 - bits), bits))
    wide = picture(3).astype(">u2") * 256 + picture(3)[:, :, ::-1]
    yield "grey16.png", png(WIDTH, HEIGHT, 16, 0, [r.tobytes() for r in wide[:, :, 0].astype(">u2")])
    yield "rgb16.png", png(WIDTH, HEIGHT, 16, 2, [r.tobytes() for r in wide.astype(">u2")])
    yield "interlaced.png", png(WIDTH, HEIGHT, 8, 2, adam7(picture(3)), 1)
    tiff = exif(6)[6:]
    small = picture(3, 9, 7)
    yield "exif6.png", png(9, 7, 8, 2, [r.tobytes() for r in small], before=chunk(b"eXIf", tiff))
    yield "lossy.webp", save(rgb, "WEBP", quality=80)
    yield "lossless.webp", save(rgb, "WEBP", lossless=True)
    yield "alpha.webp", save(rgba, "WEBP", lossless=True, exact=True)
    yield "lossy_alpha.webp", save(rgba, "WEBP", quality=80)
    yield "exif8.webp", riff_exif(save(rgb, "WEBP", lossless=True), exif(8)[6:])


def main():
    os.makedirs(OUT, exist_ok=True)
    lines, pixels = [], b""
    for name, data in files():
        with open(os.path.join(OUT, name), "wb") as file:
            file.write(data)
        image = Image.open(io.BytesIO(data))
        orientation = image.getexif().get(0x0112, 1)
        if name == "grey16.png":
            values = numpy.asarray(image).astype(numpy.uint32)
            rgb = numpy.repeat(((values + 128) // 257).astype(numpy.uint8)[:, :, None], 3, 2)
        else:
            rgb = numpy.asarray(image.convert("RGB"))
        lines.append("%s %d %d %d %d" % (name, image.width, image.height, orientation, len(pixels)))
        pixels += rgb.tobytes()
        if orientation > 1:
            turned = ImageOps.exif_transpose(image).convert("RGB")
            lines.append("turned/%s %d %d 1 %d" % (name, turned.width, turned.height, len(pixels)))
            pixels += turned.tobytes()
    with open(os.path.join(OUT, "golden.txt"), "w") as file:
        file.write("\n".join(lines) + "\n")
    with open(os.path.join(OUT, "golden.rgb"), "wb") as file:
        file.write(pixels)


main()
