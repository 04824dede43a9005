/**
 * System calls that a sandbox may make: everything else answers EPERM. The set is that of Docker's default profile for a container
 * with Docker's default capabilities, written as an allow list by what the calls are for. Left out on purpose: mounting, namespaces,
 * kernel modules, the clock, keyrings, bpf, perf, io_uring, userfaultfd, quota, swap, reboot, raw ports, handles to files.
 */

const files = `access chdir chmod chown chown32 chroot close close_range copy_file_range creat dup dup2 dup3 faccessat faccessat2
  fadvise64 fadvise64_64 fallocate fchdir fchmod fchmodat fchmodat2 fchown fchown32 fchownat fcntl fcntl64 fdatasync flock fstat
  fstat64 fstatat64 fstatfs fstatfs64 fsync ftruncate ftruncate64 futimesat getcwd getdents getdents64 ioctl lchown lchown32
  link linkat lseek _llseek lstat lstat64 mkdir mkdirat mknod mknodat newfstatat open openat openat2 pread64 preadv preadv2
  pwrite64 pwritev pwritev2 read readahead readdir readlink readlinkat readv rename renameat renameat2 rmdir sendfile sendfile64
  splice stat stat64 statfs statfs64 statx symlink symlinkat sync sync_file_range syncfs tee truncate truncate64 umask
  unlink unlinkat utime utimensat utimensat_time64 utimes vmsplice write writev cachestat`;

const attributes = `fgetxattr flistxattr fremovexattr fsetxattr getxattr lgetxattr listxattr llistxattr lremovexattr lsetxattr
  removexattr setxattr`;

const watching = `epoll_create epoll_create1 epoll_ctl epoll_ctl_old epoll_pwait epoll_pwait2 epoll_wait epoll_wait_old eventfd
  eventfd2 fanotify_mark inotify_add_watch inotify_init inotify_init1 inotify_rm_watch pipe pipe2 poll ppoll ppoll_time64 pselect6
  pselect6_time64 select _newselect signalfd signalfd4 io_cancel io_destroy io_getevents io_pgetevents io_pgetevents_time64
  io_setup io_submit`;

const memory = `brk madvise map_shadow_stack membarrier memfd_create memfd_secret mincore mlock mlock2 mlockall mmap mmap2
  mprotect mremap msync munlock munlockall munmap pkey_alloc pkey_free pkey_mprotect remap_file_pages`;

const processes = `capget capset execve execveat exit exit_group fork get_robust_list get_thread_area getcpu getegid
  getegid32 geteuid geteuid32 getgid getgid32 getgroups getgroups32 getpgid getpgrp getpid getppid getpriority getresgid getresgid32
  getresuid getresuid32 getrlimit getrusage getsid gettid getuid getuid32 ioprio_get ioprio_set kill landlock_add_rule
  landlock_create_ruleset landlock_restrict_self pause pidfd_open pidfd_send_signal prctl prlimit64 process_mrelease restart_syscall
  rseq sched_get_priority_max sched_get_priority_min sched_getaffinity sched_getattr sched_getparam sched_getscheduler
  sched_rr_get_interval sched_rr_get_interval_time64 sched_setaffinity sched_setattr sched_setparam sched_setscheduler sched_yield
  seccomp set_robust_list set_thread_area set_tid_address setfsgid setfsgid32 setfsuid setfsuid32 setgid setgid32 setgroups
  setgroups32 setpgid setpriority setregid setregid32 setresgid setresgid32 setresuid setresuid32 setreuid setreuid32 setrlimit
  setsid setuid setuid32 sysinfo tgkill tkill ugetrlimit uname vfork wait4 waitid waitpid`;

const debugging = `kcmp pidfd_getfd process_madvise process_vm_readv process_vm_writev ptrace`;

const signals = `rt_sigaction rt_sigpending rt_sigprocmask rt_sigqueueinfo rt_sigreturn rt_sigsuspend rt_sigtimedwait
  rt_sigtimedwait_time64 rt_tgsigqueueinfo sigaction sigaltstack signal sigpending sigprocmask sigreturn sigsuspend`;

const time = `adjtimex alarm clock_adjtime clock_adjtime64 clock_getres clock_getres_time64 clock_gettime clock_gettime64
  clock_nanosleep clock_nanosleep_time64 getitimer gettimeofday nanosleep setitimer time timer_create timer_delete timer_getoverrun
  timer_gettime timer_gettime64 timer_settime timer_settime64 timerfd_create timerfd_gettime timerfd_gettime64 timerfd_settime
  timerfd_settime64 times`;

const synchronising = `futex futex_requeue futex_time64 futex_wait futex_waitv futex_wake`;

const ipc = `ipc mq_getsetattr mq_notify mq_open mq_timedreceive mq_timedreceive_time64 mq_timedsend mq_timedsend_time64 mq_unlink
  msgctl msgget msgrcv msgsnd semctl semget semop semtimedop semtimedop_time64 shmat shmctl shmdt shmget`;

const network = `accept accept4 bind connect getpeername getsockname getsockopt listen recv recvfrom recvmmsg recvmmsg_time64 recvmsg
  send sendmmsg sendmsg sendto setsockopt shutdown socketcall socketpair`;

const random = `getrandom`;

const perArchitecture: Readonly<
  Partial<Record<string, { calls: string; architectures: readonly string[] }>>
> = {
  x64: {
    calls: 'arch_prctl modify_ldt',
    // Without x32, which hardly any kernel has: each architecture costs milliseconds at every start.
    architectures: ['SCMP_ARCH_X86_64', 'SCMP_ARCH_X86'],
  },
  arm64: {
    calls: 'arm_fadvise64_64 arm_sync_file_range sync_file_range2 breakpoint cacheflush set_tls',
    architectures: ['SCMP_ARCH_AARCH64', 'SCMP_ARCH_ARM'],
  },
};

/** Every namespace flag of `clone`: without them it only makes processes and threads. */
const namespaceFlags = 0x7e020000;
/** Linux, 32-bit Linux and the two "no randomisation" forms that debuggers need, and "only tell me". */
const personalities = [0x0, 0x8, 0x20000, 0x20008, 0xffffffff];
const vsockFamily = 40;
const errno = { EPERM: 1, ENOSYS: 38 } as const;

interface SeccompRule {
  readonly names: readonly string[];
  readonly action: 'SCMP_ACT_ALLOW' | 'SCMP_ACT_ERRNO';
  readonly errnoRet?: number;
  readonly args?: readonly {
    readonly index: number;
    readonly value: number;
    readonly valueTwo?: number;
    readonly op: 'SCMP_CMP_EQ' | 'SCMP_CMP_NE' | 'SCMP_CMP_MASKED_EQ';
  }[];
}

export interface SeccompProfile {
  readonly defaultAction: 'SCMP_ACT_ERRNO';
  readonly defaultErrnoRet: number;
  readonly architectures: readonly string[];
  readonly syscalls: readonly SeccompRule[];
}

export function seccompProfile(architecture: string = process.arch): SeccompProfile {
  const own = perArchitecture[architecture];
  const groups = [
    ...[files, attributes, watching, memory, processes, debugging, signals, time, synchronising],
    ...[ipc, network, random, own?.calls ?? ''],
  ];
  const names = groups.flatMap((group) => group.split(/\s+/)).filter((name) => name !== '');
  return {
    defaultAction: 'SCMP_ACT_ERRNO',
    defaultErrnoRet: errno.EPERM,
    architectures: own?.architectures ?? [],
    syscalls: [
      { names, action: 'SCMP_ACT_ALLOW' },
      ...personalities.map((value): SeccompRule => ({
        names: ['personality'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value, op: 'SCMP_CMP_EQ' }],
      })),
      {
        names: ['clone'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: namespaceFlags, valueTwo: 0, op: 'SCMP_CMP_MASKED_EQ' }],
      },
      // Its flags lie in memory where no filter can see them; ENOSYS makes the C library fall back to `clone`.
      { names: ['clone3'], action: 'SCMP_ACT_ERRNO', errnoRet: errno.ENOSYS },
      {
        names: ['socket'],
        action: 'SCMP_ACT_ALLOW',
        args: [{ index: 0, value: vsockFamily, op: 'SCMP_CMP_NE' }],
      },
    ],
  };
}
