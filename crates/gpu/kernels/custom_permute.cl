// A tensor of four axes written plainly, out of one that lies in another order: s0 to s3 are its steps along the axes of the result,
// d1 to d3 the sizes of the inner axes of the result. ELEMENT is any type of the same size as the elements. Both begin at offsets.
__kernel void custom_permute(__global const ELEMENT *src, __global ELEMENT *dst, int from, int to, int d1, int d2, int d3, int s0,
                             int s1, int s2, int s3, int count)
{
    const int i = get_global_id(0);
    if (i >= count) {
        return;
    }
    const int i3 = i % d3;
    const int i2 = i / d3 % d2;
    const int i1 = i / (d3 * d2) % d1;
    const int i0 = i / (d3 * d2 * d1);
    dst[to + i] = src[from + i0 * s0 + i1 * s1 + i2 * s2 + i3 * s3];
}
