import { nodeCryptography } from '@zabra/runtime/node'
import { NO_LINE, verifyAudit, type AuditPlace, type ChainFault, type ChainState } from '@zabra/server/files'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { note, print, printJson, type Io } from '../io.ts'
import { progress } from '../progress.ts'

interface Flags {
  readonly head?: string
}

/** `zabra audit`: checks the audit log of a server. */
export const audit: CommandModule = (program, { io, options }) => {
  program
    .command('audit')
    .description('check the audit log of a server')
    .command('verify')
    .description('follow the hashes of an audit log that was written with audit.chain')
    .argument(
      '<files...>',
      'the audit file with its renamed ones, in any order; files of other names the oldest first',
    )
    .option('--head <hash>', 'the head of an earlier run, which must be the hash of one of the lines', hash)
    .action(async (given: string[], { head }: Flags) => {
      const files = inOrder(given)
      const state = await verify(io, files, head)
      if (options().json) printJson(io, reportOf(files, state))
      else report(io, files, state)
      const problem = problemOf(state, head)
      if (problem !== undefined) throw new Failure(problem, ExitCode.damagedFile)
    })
}

async function verify(io: Io, files: readonly string[], wanted: string | undefined): Promise<ChainState> {
  const { disk } = io.platform
  let size = 0
  for (const file of files) size += await disk.size(file)
  const bar = progress(io, 'Reading the audit log', 'bytes', size)
  try {
    const state = await verifyAudit(files, {
      disk,
      sha256: () => nodeCryptography.sha256(),
      wanted,
      onProgress(bytes) {
        bar.update(bytes)
        return !io.signal.aborted
      },
    })
    io.signal.throwIfAborted()
    return state
  } finally {
    bar.stop()
  }
}

/** Returns files that a server has renamed from the highest number to the file itself; others as they are. */
function inOrder(files: readonly string[]): readonly string[] {
  const [base] = files.toSorted((a, b) => a.length - b.length)
  const ageOf = (file: string): number => {
    const suffix = file === base ? '.0' : file.startsWith(base!) ? file.slice(base!.length) : ''
    return /^\.\d+$/.test(suffix) ? Number(suffix.slice(1)) : Number.NaN
  }
  const isRotation = files.every((file) => !Number.isNaN(ageOf(file)))
  return isRotation ? files.toSorted((a, b) => ageOf(b) - ageOf(a)) : files
}

function report(io: Io, files: readonly string[], state: ChainState): void {
  const { lines, unlinkedLines, first, head, tornAt, fault, wantedAt } = state
  if (first !== undefined && unlinkedLines > 0)
    note(
      io,
      `The first ${count(unlinkedLines, 'line')} were written without hashes; only the last of them is covered.`,
    )
  else if (first !== undefined && first !== NO_LINE)
    note(io, `The first line follows one that is not in these files, with the hash ${first}.`)
  for (const at of tornAt) note(io, `${at.file}:${at.line} is torn: a crash or a full disk has cut it off.`)
  if (fault !== undefined || first === undefined) return
  print(io, `${count(lines, 'line')} in ${count(files.length, 'file')}: each follows the one before`)
  if (wantedAt !== undefined) print(io, `the line with the given head is ${where(wantedAt)}`)
  print(io, `head ${head}`)
}

function problemOf({ fault, first, wantedAt }: ChainState, head: string | undefined): string | undefined {
  if (fault !== undefined) return faultText(fault)
  if (first === undefined)
    return 'No line has the hash of the one before. Such lines are written with audit.chain=true; if they were, all of them have been changed.'
  if (head !== undefined && wantedAt === undefined)
    return `No line has the hash ${head}: the lines of that time were changed or removed, or are in a file that was not given.`
  return undefined
}

function faultText(fault: ChainFault): string {
  const at = where(fault)
  switch (fault.kind) {
    case 'changed':
      return `${at} was changed since it was written: its hash is not the one that the next line holds.`
    case 'missing':
      return `Lines before ${at} are missing.`
    case 'broken':
      return `${at} was changed since it was written, or lines between it and the next one are missing.`
    case 'inserted':
      return `${at} was inserted: the lines before and behind it follow each other.`
    case 'unlinked':
      return `${at} has no hash of the line before: it was changed or inserted, or written while audit.chain was off.`
    case 'restarted':
      return `${at} begins a new chain: the lines before it were removed, or the files are in the wrong order, or they were moved while the server was stopped.`
  }
}

function reportOf(files: readonly string[], state: ChainState): object {
  const { lines, unlinkedLines, first, head, tornAt, fault, wantedAt } = state
  return {
    files,
    lines,
    unlinkedLines,
    first: first ?? null,
    head: fault === undefined ? (head ?? null) : null,
    torn: tornAt,
    fault: fault ?? null,
    headAt: wantedAt ?? null,
  }
}

const where = ({ file, line }: AuditPlace): string => `${file}:${line}`

const count = (number: number, unit: string): string => `${number} ${unit}${number === 1 ? '' : 's'}`

function hash(text: string): string {
  if (!/^[0-9a-f]{64}$/i.test(text))
    throw new UsageError(
      `Expected a head of 64 hexadecimal digits, as zabra audit verify prints it, got "${text}".`,
    )
  return text.toLowerCase()
}
