import { finding, type Finding } from './finding.ts'

/** What the machine tells; a part is undefined where it cannot be read. */
export interface MachineFacts {
  /** Most open files of this user's programs. */
  readonly maxOpenFiles: number | undefined
  /** The text of /sys/kernel/mm/transparent_hugepage/enabled. */
  readonly hugePages: string | undefined
  /** The text of /proc/swaps. */
  readonly swaps: string | undefined
  /** The text of /proc/sys/net/core/somaxconn. */
  readonly backlog: string | undefined
}

const MIN_OPEN_FILES = 10_000
const MIN_BACKLOG = 1024

/** Checks limits of the system on which a server runs. */
export function* checkMachine({ maxOpenFiles, hugePages, swaps, backlog }: MachineFacts): Generator<Finding> {
  if (maxOpenFiles !== undefined && maxOpenFiles > 0 && maxOpenFiles < MIN_OPEN_FILES)
    yield finding(
      'open-files',
      'this machine',
      `programs of this user may open ${maxOpenFiles} files, and each client needs one`,
      `Raise the limit (LimitNOFILE, ulimit -n) to ${MIN_OPEN_FILES} or more.`,
    )
  if (hugePages?.includes('[always]'))
    yield finding(
      'huge-pages',
      'this machine',
      'transparent huge pages are always on, which makes pauses and takes memory',
      'Write madvise into /sys/kernel/mm/transparent_hugepage/enabled.',
    )
  const used = (swaps ?? '')
    .split('\n')
    .slice(1)
    .some((line) => Number(line.trim().split(/\s+/)[3] ?? 0) > 0)
  if (used)
    yield finding(
      'swap',
      'this machine',
      'swap is in use: a server whose memory is swapped out loses sessions and leadership',
      'Give it enough memory, or set vm.swappiness=1.',
    )
  if (backlog !== undefined && Number(backlog) < MIN_BACKLOG)
    yield finding(
      'backlog',
      'this machine',
      `net.core.somaxconn is ${backlog.trim()}: many clients that reconnect at once are refused`,
      `Set net.core.somaxconn to ${MIN_BACKLOG} or more.`,
    )
}
