import { Option } from 'commander'
import { chopLog, readLog, repairLog, type LogReport } from '@zabra/server/files'
import { nodePath } from '../arguments.ts'
import type { CommandModule } from '../context.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import { describeGap, reportJson, reportLines } from '../files/log-report.ts'
import { findFiles, withFolderLock } from '../files/find-files.ts'
import { changesPath, txnJson, txnLine } from '../files/format-txn.ts'
import { note, print, printJson, type Io } from '../io.ts'
import { progress } from '../progress.ts'
import { hex } from '../text/hex.ts'

interface Flags {
  readonly check?: boolean
  readonly repair?: boolean
  readonly force?: boolean
  readonly output?: string
  readonly data?: boolean
  readonly path?: string
  readonly session?: bigint
  readonly chop?: number
}

/** `zabra log`: prints, checks or repairs transaction logs of Zabra and Apache ZooKeeper. */
export const log: CommandModule = (program, { io, options }) => {
  program
    .command('log')
    .description('print the transactions of a log file or of a data folder; check or repair it')
    .argument('<file or folder>', 'log.<zxid>, a data folder, or its version-2')
    .option('--data', 'print the beginning of the data too')
    .option('--path <path>', 'only transactions that change this node or a descendant', nodePath)
    .option('--session <id>', 'only transactions of this session, such as 0x100a3f', sessionId)
    .addOption(
      new Option('--check', 'print whether the files are sound instead of transactions').conflicts('repair'),
    )
    .option('--repair', 'cut off an incomplete last write; keeps a copy of the file next to it')
    .addOption(
      new Option('--chop <zxid>', 'write the transactions of one file up to this one to --output')
        .argParser(zxidArgument)
        .conflicts(['repair', 'check']),
    )
    .option(
      '-o, --output <file>',
      'with --chop or --repair: the new file; --repair then leaves the log as it is',
    )
    .option('--force', 'with --repair: also cut at damage in the middle, which loses all that follows')
    .action(async (target: string, flags: Flags) => {
      if (!flags.repair && (flags.force || (flags.output !== undefined && flags.chop === undefined)))
        throw new UsageError(
          '--force belongs to --repair, and --output to --repair or --chop: give it too, or leave them out.',
        )
      const files = await findFiles(io.platform.disk, target, 'log')
      const { json } = options()
      if (flags.chop !== undefined) await chop(io, files, flags.chop, flags.output, json)
      else if (flags.repair) await repairAll(io, files, flags, json)
      else if (flags.check) await check(io, files, json)
      else await printTransactions(io, files, flags, json)
    })
}

async function printTransactions(
  io: Io,
  files: readonly string[],
  flags: Flags,
  json: boolean,
): Promise<void> {
  const damaged: LogReport[] = []
  for (const file of files) {
    const report = await readLog(io.platform.disk, file, ({ logged }) => {
      if (io.signal.aborted) return false
      if (flags.path !== undefined && !changesPath(logged.txn, flags.path)) return true
      if (flags.session !== undefined && BigInt.asUintN(64, logged.header.sessionId) !== flags.session)
        return true
      if (json) printJson(io, txnJson(logged, flags.data === true))
      else print(io, txnLine(logged, flags.data === true))
      return true
    })
    io.signal.throwIfAborted()
    if (report.problem !== undefined) for (const line of reportLines(report)) note(io, line.trim())
    if (report.state === 'damaged') damaged.push(report)
  }
  refuseDamaged(damaged)
}

async function check(io: Io, files: readonly string[], json: boolean): Promise<void> {
  const damaged: LogReport[] = []
  const gaps: string[] = []
  let before: LogReport | undefined
  for await (const report of scan(io, files)) {
    if (json) printJson(io, reportJson(report))
    else print(io, ...reportLines(report))
    if (report.state === 'damaged') damaged.push(report)
    const gap = before && describeGap(before, report)
    if (gap !== undefined) gaps.push(gap)
    if (report.transactions > 0) before = report
  }
  refuseDamaged(damaged)
  if (gaps.length > 0) throw new Failure(gaps.join(' '), ExitCode.damagedFile)
}

/** Reads every file to its end, with a progress bar. */
async function* scan(io: Io, files: readonly string[]): AsyncGenerator<LogReport> {
  const { disk } = io.platform
  for (const file of files) {
    const bar = progress(io, `Reading ${file}`, 'bytes', await disk.size(file))
    let report: LogReport
    try {
      report = await readLog(disk, file, ({ offset }) => {
        bar.update(offset)
        return !io.signal.aborted
      })
    } finally {
      bar.stop()
    }
    io.signal.throwIfAborted()
    yield report
  }
}

async function repairAll(io: Io, files: readonly string[], flags: Flags, json: boolean): Promise<void> {
  const { disk } = io.platform
  const { output, force } = flags
  if (output !== undefined && files.length > 1)
    throw new UsageError(`Expected one log file with --output, got ${files.length}. Name the file.`)
  const options = { ...(output === undefined ? {} : { output }), force: force === true }
  await withFolderLock(io, files[0]!, async () => {
    for await (const report of scan(io, files)) {
      const repair = await repairLog(disk, report, options)
      if (json) printJson(io, { ...reportJson(report), repair: repair ?? null })
      else if (repair === undefined) print(io, `${report.file}: sound, nothing to do`)
      else {
        const result = repair.written ?? 'nothing was left to keep, the file is gone'
        const copy = repair.backup === undefined ? '' : `; as it was: ${repair.backup}`
        print(
          io,
          `${report.file}: cut ${repair.bytesCut} bytes, kept ${repair.kept} transactions: ${result}${copy}`,
        )
      }
    }
  })
}

async function chop(
  io: Io,
  files: readonly string[],
  zxid: number,
  output: string | undefined,
  json: boolean,
): Promise<void> {
  if (output === undefined)
    throw new UsageError('--chop needs --output, the new file: the log stays as it is.')
  if (files.length > 1)
    throw new UsageError(`Expected one log file with --chop, got ${files.length}. Name the file.`)
  try {
    const { kept } = await chopLog(io.platform.disk, files[0]!, zxid, output)
    if (json) printJson(io, { file: files[0], output, kept, last: hex(zxid) })
    else print(io, `${output}: ${kept} transactions up to ${hex(zxid)}`)
  } catch (error) {
    if (error instanceof RangeError) throw new UsageError(`${error.message}.`)
    throw error
  }
}

function zxidArgument(text: string): number {
  const zxid = Number.parseInt(text, 16)
  if (!/^(0x)?[0-9a-f]{1,14}$/i.test(text) || !Number.isSafeInteger(zxid))
    throw new UsageError(`Expected a zxid in hexadecimal digits, such as 0x100000005, got "${text}".`)
  return zxid
}

function refuseDamaged(damaged: readonly LogReport[]): void {
  if (damaged.length === 0) return
  throw new Failure(
    `${damaged.map(({ file }) => file).join(', ')} ${damaged.length === 1 ? 'is' : 'are'} damaged. Keep a copy before you do anything else.`,
    ExitCode.damagedFile,
  )
}

function sessionId(text: string): bigint {
  if (!/^(0x[0-9a-f]{1,16}|\d+)$/i.test(text))
    throw new UsageError(`Expected a session as 0x and hexadecimal digits, got "${text}".`)
  return BigInt.asUintN(64, BigInt(text))
}
