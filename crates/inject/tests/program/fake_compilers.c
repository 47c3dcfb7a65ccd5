/* Compilers that a program may load: they hand out the machine code that FAKE_CUBIN names, and say that it was made of
 * the text FAKE_PTX. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static char cubin[1 << 22];
static size_t cubin_bytes(void) {
    FILE *file = fopen(getenv("FAKE_CUBIN"), "rb");
    size_t bytes = fread(cubin, 1, sizeof cubin, file);
    fclose(file);
    return bytes;
}

int nvrtcCompileProgram(void *program, int count, const char **options) { return 0; }
int nvrtcGetPTXSize(void *program, size_t *size) { *size = strlen(getenv("FAKE_PTX")) + 1; return 0; }
int nvrtcGetPTX(void *program, char *ptx) { strcpy(ptx, getenv("FAKE_PTX")); return 0; }
int nvrtcGetCUBINSize(void *program, size_t *size) { *size = cubin_bytes(); return 0; }
int nvrtcGetCUBIN(void *program, char *to) { memcpy(to, cubin, cubin_bytes()); return 0; }

int __nvJitLinkCreate_13_0(void **link, unsigned count, const char **options) { *link = malloc(8); return 0; }
int __nvJitLinkAddData_13_0(void *link, unsigned kind, const void *data, size_t size, const char *name) { return 0; }
int __nvJitLinkAddFile_13_0(void *link, unsigned kind, const char *file) { return 0; }
int __nvJitLinkComplete_13_0(void *link) { return 0; }
int __nvJitLinkGetLinkedCubinSize_13_0(void *link, size_t *size) { *size = cubin_bytes(); return 0; }
int __nvJitLinkGetLinkedCubin_13_0(void *link, void *to) { memcpy(to, cubin, cubin_bytes()); return 0; }
