/* Included before every C file of a wheel: take these functions in the version that glibc 2.28 has.

   glibc 2.34 moved libdl and libpthread into libc and gave their functions a new version.  A library that is linked
   there would need glibc 2.34, though the old versions are the same functions.  The library of
   `gilscope gil` defines a pthread_create of its own, so a file that calls the C library's binds it by itself.  Goes when
   wheels need glibc 2.34.  */
#if defined(__x86_64__) && defined(__LP64__)
#define GILSCOPE_FIRST "GLIBC_2.2.5"
#define GILSCOPE_DLADDR1 "GLIBC_2.3.3"
#elif defined(__aarch64__)
#define GILSCOPE_FIRST "GLIBC_2.17"
#define GILSCOPE_DLADDR1 "GLIBC_2.17"
#endif

#ifdef GILSCOPE_FIRST
__asm__(".symver dladdr, dladdr@" GILSCOPE_FIRST);
__asm__(".symver dladdr1, dladdr1@" GILSCOPE_DLADDR1);
__asm__(".symver dlsym, dlsym@" GILSCOPE_FIRST);
__asm__(".symver dlvsym, dlvsym@" GILSCOPE_FIRST);
__asm__(".symver pthread_join, pthread_join@" GILSCOPE_FIRST);
__asm__(".symver pthread_key_create, pthread_key_create@" GILSCOPE_FIRST);
__asm__(".symver pthread_setspecific, pthread_setspecific@" GILSCOPE_FIRST);
#endif
