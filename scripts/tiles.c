// Tile instructions of AMX for a program on a processor that has none: preloaded by scripts/test-amx, it carries them out when
// they trap. What the instruction set says is an error (tiles that do not fit, that are not configured, the same tile twice)
// ends the program. TILES_OF is the program, TILES_FOUND where the answer of `Amx::detect` lies in it, which is written before
// it is asked for: the instructions that detection looks at do not trap.
#define _GNU_SOURCE
#include <immintrin.h>
#include <link.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#include <unistd.h>

enum { TILES = 8, SIDE = 16, ROW = 64 };

// The registers of a thread. Rows and columns behind the size of a tile are zero.
static __thread struct {
    int rows[TILES], bytes[TILES];
    uint32_t cells[TILES][SIDE][SIDE] __attribute__((aligned(64)));
} tiles;

static unsigned long products;
static struct sigaction before;

static void refuse(const char *why, const uint8_t *at) {
    fprintf(stderr, "tiles: %s: %02x %02x %02x %02x %02x\n", why, at[0], at[1], at[2], at[3], at[4]);
    abort();
}

static void configured(int tile, const uint8_t *at) {
    if (tiles.rows[tile] == 0) refuse("a tile that is not configured", at);
    if (tiles.bytes[tile] % 4 != 0) refuse("a part of a cell", at);
}

static void configure(const uint8_t *config, const uint8_t *at) {
    memset(&tiles, 0, sizeof tiles);
    if (config[0] > 1) refuse("an unknown palette", at);
    if (config[0] == 0) return;
    for (int i = 1; i < ROW; i++) {
        int used = (i >= 16 && i < 16 + 2 * TILES) || (i >= 48 && i < 48 + TILES);
        if (!used && config[i] != 0) refuse("reserved bytes of a configuration", at);
    }
    for (int t = 0; t < TILES; t++) {
        uint16_t bytes;
        memcpy(&bytes, config + 16 + 2 * t, 2);
        tiles.bytes[t] = bytes;
        tiles.rows[t] = config[48 + t];
        if (bytes > ROW || tiles.rows[t] > SIDE || !bytes != !tiles.rows[t]) refuse("a tile of a wrong size", at);
    }
}

static void load(int tile, const char *from, int64_t stride) {
    memset(tiles.cells[tile], 0, sizeof tiles.cells[tile]);
    for (int r = 0; r < tiles.rows[tile]; r++) memcpy(tiles.cells[tile][r], from + r * stride, tiles.bytes[tile]);
}

static void store(int tile, char *to, int64_t stride) {
    for (int r = 0; r < tiles.rows[tile]; r++) memcpy(to + r * stride, tiles.cells[tile][r], tiles.bytes[tile]);
}

// Pairs of bf16, or of f16: even and odd factors are summed apart, rounded to the nearest; small f32 are zero.
__attribute__((target("avx512f,avx512bw,avx512vl,avx512dq,f16c,fma"))) static void pairs(int c, int a, int b, int halves) {
    unsigned mode = _mm_getcsr();
    _mm_setcsr(0x1f80 | 0x8040);
    const __m512i high = _mm512_set1_epi32((int)0xffff0000);
    for (int r = 0; r < tiles.rows[c]; r++) {
        __m512 even = _mm512_setzero_ps(), odd = _mm512_setzero_ps();
        for (int k = 0; k < tiles.rows[b]; k++) {
            __m512i x = _mm512_set1_epi32((int)tiles.cells[a][r][k]), y = _mm512_load_si512(tiles.cells[b][k]);
            __m512 x0, x1, y0, y1;
            if (halves) {
                x0 = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(x));
                x1 = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(x, 16)));
                y0 = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(y));
                y1 = _mm512_cvtph_ps(_mm512_cvtepi32_epi16(_mm512_srli_epi32(y, 16)));
            } else {
                x0 = _mm512_castsi512_ps(_mm512_slli_epi32(x, 16));
                x1 = _mm512_castsi512_ps(_mm512_and_si512(x, high));
                y0 = _mm512_castsi512_ps(_mm512_slli_epi32(y, 16));
                y1 = _mm512_castsi512_ps(_mm512_and_si512(y, high));
            }
            even = _mm512_fmadd_ps(x0, y0, even);
            odd = _mm512_fmadd_ps(x1, y1, odd);
        }
        __mmask16 columns = (__mmask16)((1u << tiles.bytes[c] / 4) - 1);
        __m512 sum = _mm512_add_ps(_mm512_load_ps(tiles.cells[c][r]), _mm512_add_ps(even, odd));
        _mm512_store_ps(tiles.cells[c][r], _mm512_maskz_mov_ps(columns, sum));
    }
    _mm_setcsr(mode);
}

static int byte(uint32_t cell, int i, int is_signed) {
    uint8_t x = (uint8_t)(cell >> 8 * i);
    return is_signed ? (int8_t)x : x;
}

static void bytes(int c, int a, int b, int signed_a, int signed_b) {
    for (int r = 0; r < tiles.rows[c]; r++)
        for (int k = 0; k < tiles.rows[b]; k++)
            for (int n = 0; n < tiles.bytes[c] / 4; n++)
                for (int i = 0; i < 4; i++)
                    tiles.cells[c][r][n] +=
                        byte(tiles.cells[a][r][k], i, signed_a) * byte(tiles.cells[b][k][n], i, signed_b);
}

static void multiply(int op, int prefix, int c, int a, int b, const uint8_t *at) {
    if (c == a || c == b || a == b) refuse("a tile twice", at);
    configured(c, at), configured(a, at), configured(b, at);
    if (tiles.rows[c] != tiles.rows[a] || tiles.bytes[c] != tiles.bytes[b] || tiles.bytes[a] != 4 * tiles.rows[b])
        refuse("tiles that do not fit", at);
    if (op == 0x5c) pairs(c, a, b, prefix == 3);
    else bytes(c, a, b, prefix >= 2, prefix == 1 || prefix == 3);
    __atomic_add_fetch(&products, 1, __ATOMIC_RELAXED);
}

// Carries out the instruction; gives its length, or 0 if it is none of tiles.
static int carry_out(const uint8_t *at, const greg_t *registers) {
    static const int order[16] = {REG_RAX, REG_RCX, REG_RDX, REG_RBX, REG_RSP, REG_RBP, REG_RSI, REG_RDI,
                                  REG_R8,  REG_R9,  REG_R10, REG_R11, REG_R12, REG_R13, REG_R14, REG_R15};
    // VEX of three bytes, map 2, W 0, 128 bits.
    if (at[0] != 0xc4 || (at[1] & 31) != 2 || (at[2] & 0x84) != 0) return 0;
    int more_index = at[1] & 0x40 ? 0 : 8, more_base = at[1] & 0x20 ? 0 : 8, third = ~(at[2] >> 3) & 15, prefix = at[2] & 3;
    int op = at[3], mode = at[4] >> 6, reg = at[4] >> 3 & 7, rm = at[4] & 7, length = 5;
    if (mode == 3) {
        if (op == 0x49 && prefix == 0 && at[4] == 0xc0) memset(&tiles, 0, sizeof tiles);
        else if (op == 0x49 && prefix == 3 && rm == 0) configured(reg, at), memset(tiles.cells[reg], 0, sizeof tiles.cells[reg]);
        else if (op == 0x5e || (op == 0x5c && prefix >= 2)) multiply(op, prefix, reg, rm, third, at);
        else return 0;
        return length;
    }
    uint64_t base, index = 0;
    int has_index = rm == 4;
    int32_t distance = 0;
    if (has_index) {
        int sib = at[length++], i = (sib >> 3 & 7) | more_index;
        if ((sib & 7) == 5 && mode == 0) return 0;
        base = (uint64_t)registers[order[(sib & 7) | more_base]];
        if (i != 4) index = (uint64_t)registers[order[i]] << (sib >> 6);
    } else {
        if (rm == 5 && mode == 0) return 0;
        base = (uint64_t)registers[order[rm | more_base]];
    }
    if (mode == 1) distance = (int8_t)at[length], length += 1;
    if (mode == 2) memcpy(&distance, at + length, 4), length += 4;
    char *memory = (char *)(base + (int64_t)distance);
    if (op == 0x49 && prefix == 0 && reg == 0) {
        configure((const uint8_t *)memory + index, at);
    } else if (op == 0x4b && prefix != 0 && has_index) {
        configured(reg, at);
        if (prefix == 2) store(reg, memory, (int64_t)index);
        else load(reg, memory, (int64_t)index);
    } else {
        return 0;
    }
    return length;
}

static void trapped(int signal_number, siginfo_t *about, void *context) {
    greg_t *registers = ((ucontext_t *)context)->uc_mcontext.gregs;
    int length = carry_out((const uint8_t *)registers[REG_RIP], registers);
    registers[REG_RIP] += length;
    if (length == 0) sigaction(signal_number, &before, NULL);
    (void)about;
}

static int first_base(struct dl_phdr_info *info, size_t size, void *base) {
    (void)size;
    *(uintptr_t *)base = info->dlpi_addr;
    return 1;
}

static int is_wanted(void) {
    const char *wanted = getenv("TILES_OF");
    char path[4096] = {0};
    return wanted && readlink("/proc/self/exe", path, sizeof path - 1) > 0 && strcmp(wanted, path) == 0;
}

__attribute__((constructor)) static void begin(void) {
    if (!is_wanted()) return;
    uintptr_t base = 0;
    dl_iterate_phdr(first_base, &base);
    // A `OnceLock<Result<_, &str>>`: the answer, of which no pointer is `Ok`, and a state that is 3 before and 0 behind.
    uint64_t *found = (uint64_t *)(base + strtoul(getenv("TILES_FOUND"), NULL, 16));
    int state = (uint32_t)found[2] == 3 ? 2 : 0;
    if ((uint32_t)found[state] != 3) refuse("the answer of detection looks otherwise", (const uint8_t *)found);
    memset(found, 0, 24);
    // Whether f16 are multiplied, too.
    found[state == 2 ? 1 : 2] = 1;
    struct sigaction action = {.sa_sigaction = trapped, .sa_flags = SA_SIGINFO | SA_NODEFER};
    sigaction(SIGILL, &action, &before);
}

__attribute__((destructor)) static void end(void) {
    if (is_wanted()) fprintf(stderr, "tiles: %lu products\n", products);
}
