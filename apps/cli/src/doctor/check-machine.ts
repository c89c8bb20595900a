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
  /** Processors that this program may use, with the limit of its control group. */
  readonly cores: number | undefined
  /** Programs that set the clock, by name; whether they have synchronised it, where their files tell. */
  readonly timeServices: ReadonlyMap<string, boolean | undefined>
}

const MIN_OPEN_FILES = 10_000
const MIN_BACKLOG = 1024
const MIN_CORES = 2

/** Checks limits of the system on which a server runs. */
export function* checkMachine({
  maxOpenFiles,
  hugePages,
  swaps,
  backlog,
  cores,
  timeServices,
}: MachineFacts): Generator<Finding> {
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
  if (cores !== undefined && cores < MIN_CORES)
    yield finding(
      'few-cores',
      'this machine',
      `programs may use ${cores} of its cores, so collecting garbage and compressing snapshots delay requests`,
      `Give the server ${MIN_CORES} cores or more.`,
    )
  yield* checkClock(timeServices)
}

/** Whether the kernel is synchronised is not in any file; what the programs that set the clock leave there is. */
function* checkClock(services: MachineFacts['timeServices']): Generator<Finding> {
  if ([...services.values()].includes(true)) return
  const idle = [...services].find(([, isSynchronised]) => isSynchronised === false)?.[0]
  const running = [...services].filter(([, state]) => state === undefined).map(([name]) => name)
  if (idle !== undefined && running.length === 0)
    yield finding(
      'clock-not-set',
      'this machine',
      `${idle} has not synchronised the clock since the machine started`,
      'Let it reach a time server: timedatectl status shows why it does not.',
    )
  else
    yield finding(
      'clock-not-known',
      'this machine',
      running.length > 0
        ? `${running.join(' and ')} runs, and no file tells whether it has synchronised the clock`
        : 'no file of systemd-timesyncd, chrony or ntpd is here, so whether the clock is synchronised is not known',
      running.includes('chrony')
        ? 'Look at it: chronyc tracking.'
        : 'Look at it: timedatectl status, chronyc tracking or ntpq -p, on the machine itself and not in a container.',
    )
}
