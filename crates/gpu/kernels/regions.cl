// Regions of feature maps as grids of bins. An item makes one element of the result, [regions, channels, rows, columns]; maps are
// [images, depth, height, width]. A region that names no image is told to the host.

// Edges of bins are floors and ceilings, so products are rounded before they are added to.
#pragma OPENCL FP_CONTRACT OFF

#define MOST_SAMPLES (1 << 20)

// A bilinear value between pixels; the first and the last one go to the border.
inline float aligned(__global const DATA *x, int base, int height, int width, float py, float px) {
    py = fmax(py, 0.0f);
    px = fmax(px, 0.0f);
    const int last_y = (int)py >= height - 1, last_x = (int)px >= width - 1;
    const int y0 = last_y ? height - 1 : (int)py, x0 = last_x ? width - 1 : (int)px;
    const int y1 = last_y ? y0 : y0 + 1, x1 = last_x ? x0 : x0 + 1;
    const float ly = last_y ? 0.0f : py - y0, lx = last_x ? 0.0f : px - x0, hy = 1.0f - ly, hx = 1.0f - lx;
    return hy * hx * LOAD(x, base + y0 * width + x0) + hy * lx * LOAD(x, base + y0 * width + x1) +
        ly * hx * LOAD(x, base + y1 * width + x0) + ly * lx * LOAD(x, base + y1 * width + x1);
}

inline int samples(int sampling, float bin) { return sampling > 0 ? sampling : (bin > 0.0f ? (int)fmin(ceil(bin), 1e9f) : 0); }

#ifdef ALIGN_MAX
// `before` and `after` are added around the scale.
__kernel void roi_align(__global const DATA *x, __global const float *rois, __global const INDEX *images, __global DATA *y,
                        const int count, const int channels, const int height, const int width, const int rows, const int columns,
                        const int n_images, const int sampling, const float scale, const float before, const float after,
                        const float least, volatile __global int *faults, const int step) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int column = at % columns, row = at / columns % rows, c = at / columns / rows % channels, r = at / columns / rows / channels;
    const long image = images[r];
    if (image < 0 || image >= n_images) {
        refuse(faults, step, image, n_images);
        return;
    }
    const float x0 = (rois[4 * r] + before) * scale + after, y0 = (rois[4 * r + 1] + before) * scale + after;
    const float x1 = (rois[4 * r + 2] + before) * scale + after, y1 = (rois[4 * r + 3] + before) * scale + after;
    const float bin_w = fmax(x1 - x0, least) / (float)columns, bin_h = fmax(y1 - y0, least) / (float)rows;
    const int nx = samples(sampling, bin_w), ny = samples(sampling, bin_h);
    if ((long)max(nx, 1) * max(ny, 1) > MOST_SAMPLES) {
        refuse(faults, step, (long)nx * ny, MOST_SAMPLES);
        return;
    }
    const float step_x = bin_w / (float)nx, step_y = bin_h / (float)ny;
    const int base = ((int)image * channels + c) * height * width;
    float sum = 0.0f, best = 0.0f;
    for (int i = 0; i < ny; i++)
        for (int j = 0; j < nx; j++) {
            const float py = y0 + row * bin_h + step_y * (i + 0.5f), px = x0 + column * bin_w + step_x * (j + 0.5f);
            if (!(py >= -1.0f && py <= (float)height && px >= -1.0f && px <= (float)width)) continue;
            const float v = aligned(x, base, height, width, py, px);
            sum += v;
            best = fmax(best, v);
        }
    STORE(y, at, ALIGN_MAX ? best : (nx > 0 && ny > 0 ? sum / ((float)nx * (float)ny) : 0.0f));
}
#else

// The image of a region, or -1 behind the end of the list, which a region with the image -1 is.
inline int image_of(__global const float *rois, int r, int n_images, volatile __global int *faults, int step) {
    for (int i = 0; i <= r; i++)
        if (rois[5 * i] == -1.0f) return -1;
    const long image = to_long(rois[5 * r]);
    if (image < 0 || image >= n_images) {
        refuse(faults, step, image, n_images);
        return -1;
    }
    return (int)image;
}

// A bilinear value inside of the map, 0 outside.
inline float between(__global const DATA *x, int base, int height, int width, float py, float px) {
    if (!(py >= 0.0f && py <= (float)(height - 1) && px >= 0.0f && px <= (float)(width - 1))) return 0.0f;
    const int y0 = min((int)py, height - 1), x0 = min((int)px, width - 1);
    const int y1 = min((int)ceil(py), height - 1), x1 = min((int)ceil(px), width - 1);
    const float dy = py - y0, dx = px - x0;
    const float a = LOAD(x, base + y0 * width + x0), b = LOAD(x, base + y0 * width + x1);
    const float c = LOAD(x, base + y1 * width + x0), d = LOAD(x, base + y1 * width + x1);
    const float upper = a + (b - a) * dx, lower = c + (d - c) * dx;
    return upper + (lower - upper) * dy;
}

// What is no number is 0.
inline int pixel(float v, float scale) { return isnan(v * scale) ? 0 : (int)clamp(round(v * scale), -1e9f, 1e9f); }
inline int inside(float v, int size) { return isnan(v) ? 0 : (int)clamp(v, 0.0f, (float)size); }

// First and end of bin `i` of `bins` over pixels `from` to `to`.
inline int2 largest_bin(float from, float to, float scale, int i, int bins, int size) {
    const int start = pixel(from, scale), end = pixel(to, scale);
    const float bin = (float)max(end - start + 1, 1) / (float)bins;
    const long first = (long)floor(i * bin) + start, last = (long)ceil((i + 1) * bin) + start;
    return (int2)((int)clamp(first, 0L, (long)size), (int)clamp(last, 0L, (long)size));
}

inline float sample_at(float from, float to, int i, int bins, int size) {
    const float last = (float)max(size - 1, 0);
    if (bins == 1) return 0.5f * (from + to) * last;
    if (i == bins - 1) return last * to;
    return i * ((to - from) * last / (float)(bins - 1)) + from * last;
}

__kernel void roi_pooling(__global const DATA *x, __global const float *rois, __global DATA *y, const int count, const int channels,
                          const int height, const int width, const int rows, const int columns, const int n_images, const float scale,
                          volatile __global int *faults, const int step) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int column = at % columns, row = at / columns % rows, c = at / columns / rows % channels, r = at / columns / rows / channels;
    const int image = image_of(rois, r, n_images, faults, step);
    const float4 roi = vload4(0, rois + 5 * r + 1);
    const int base = (image * channels + c) * height * width;
    float v = 0.0f;
#if BILINEAR
    if (image >= 0) v = between(x, base, height, width, sample_at(roi.s1, roi.s3, row, rows, height), sample_at(roi.s0, roi.s2, column, columns, width));
#else
    const int2 ys = largest_bin(roi.s1, roi.s3, scale, row, rows, height), xs = largest_bin(roi.s0, roi.s2, scale, column, columns, width);
    if (image >= 0 && ys.s0 < ys.s1 && xs.s0 < xs.s1) {
        v = -FLT_MAX;
        for (int h = ys.s0; h < ys.s1; h++)
            for (int w = xs.s0; w < xs.s1; w++) v = fmax(v, LOAD(x, base + h * width + w));
    }
#endif
    STORE(y, at, v);
}

// First and end of a bin of a mean.
inline int2 mean_bin(float from, float to, float scale, int i, int bins, int size) {
    const float start = round(from) * scale, end = (round(to) + 1.0f) * scale;
    const float bin = fmax(end - start, 0.1f) / (float)bins;
    const float first = floor(start + i * bin), last = ceil(start + (i + 1) * bin);
    return (int2)(inside(first, size), inside(last, size));
}

// Where bin `i` of sub-bin `part` samples an axis.
inline float sub_sample(float from, float to, int part, int parts, int i, int bins, int size) {
    const float last = (float)max(size - 1, 0), length = (to - from) / (float)parts, start = from + part * length;
    return bins == 1 ? (start + start + length) * last / 2.0f : i * (length * last / (float)(bins - 1)) + start * last;
}

// The result is [regions, channels, bins, bins]; every bin has maps of its own.
__kernel void psroi_pooling(__global const DATA *x, __global const float *rois, __global DATA *y, const int count, const int channels,
                            const int height, const int width, const int bins, const int parts_y, const int parts_x,
                            const int n_images, const float scale, volatile __global int *faults, const int step) {
    const int at = get_global_id(0);
    if (at >= count) return;
    const int column = at % bins, row = at / bins % bins, c = at / bins / bins % channels, r = at / bins / bins / channels;
    const int image = image_of(rois, r, n_images, faults, step);
    const float4 roi = vload4(0, rois + 5 * r + 1);
    const int plane = height * width;
    float v = 0.0f;
#if BILINEAR
    const int parts = parts_y * parts_x;
    for (int part = 0; image >= 0 && part < parts; part++) {
        const float py = sub_sample(roi.s1 * scale, roi.s3 * scale, part / parts_x, parts_y, row, bins, height);
        const float px = sub_sample(roi.s0 * scale, roi.s2 * scale, part % parts_x, parts_x, column, bins, width);
        v += between(x, ((image * parts + part) * channels + c) * plane, height, width, py, px);
    }
    v /= (float)parts;
#else
    const int2 ys = mean_bin(roi.s1, roi.s3, scale, row, bins, height), xs = mean_bin(roi.s0, roi.s2, scale, column, bins, width);
    if (image >= 0 && ys.s0 < ys.s1 && xs.s0 < xs.s1) {
        const int base = ((image * channels + c) * bins * bins + row * bins + column) * plane;
        for (int h = ys.s0; h < ys.s1; h++)
            for (int w = xs.s0; w < xs.s1; w++) v += LOAD(x, base + h * width + w);
        v /= (float)((ys.s1 - ys.s0) * (xs.s1 - xs.s0));
    }
#endif
    STORE(y, at, v);
}
#endif
