import { Option, type Command } from 'commander'
import { resolve } from 'node:path'
import { keepAliveNodeClock, nodeCryptography } from '@zabra/runtime/node'
import {
  BackupError,
  Catalog,
  lastBefore,
  lastBeforeChange,
  memoryCheck,
  openTarget,
  parseChange,
  parseCredentials,
  parseKey,
  pauseAfter,
  type BackupChain,
  type BackupStore,
  type S3Access,
  type S3Credentials,
} from '@zabra/server/backup'
import { InvalidArgumentError } from 'commander'
import { readFileArg } from '../arguments.ts'
import { ExitCode, Failure, UsageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'

/** Time after which the load of a backup pauses, so that signals are seen, in milliseconds. */
const SLICE_MS = 100

/** Options of commands that use a target of backups. */
export interface StoreFlags {
  readonly target?: string
  readonly keyFile?: string
  readonly s3Endpoint?: string
  readonly s3Region?: string
}

/** Options that name a moment. */
export interface MomentFlags {
  readonly at?: number
  readonly zxid?: number
  readonly before?: string
}

/** Adds the options of `StoreFlags` to a command. */
export function withStoreOptions(command: Command): Command {
  return command
    .option(
      '--target <target>',
      'where the backups are: a folder, or s3://bucket/prefix (else ZABRA_BACKUP_TARGET)',
    )
    .option(
      '--key-file <file>',
      'the key of encrypted backups: 64 hexadecimal digits; earlier keys in further lines (else ZABRA_BACKUP_KEY_FILE)',
    )
    .option('--s3-endpoint <url>', "the URL of a store beside Amazon's (else AWS_ENDPOINT_URL)")
    .option('--s3-region <region>', 'the region of the bucket (else AWS_REGION; us-east-1 by default)')
}

/** Adds the options of `MomentFlags` to a command. */
export function withMomentOptions(command: Command): Command {
  return command
    .addOption(
      new Option(
        '--at <time>',
        'the state at a time, such as 2026-11-23T01:00:00Z; local time without a zone',
      )
        .argParser(timeArgument)
        .conflicts(['zxid', 'before']),
    )
    .addOption(
      new Option('--zxid <zxid>', 'the state after a transaction')
        .argParser(zxidArgument)
        .conflicts('before'),
    )
    .option('--before <change>', "the state before the last change of a kind, such as 'delete /app'")
}

/** Opens the target of backups. Rejects with a `UsageError` when none is named, or its key or credentials cannot be read. */
export async function openStore(io: Io, flags: StoreFlags): Promise<BackupStore> {
  const named = flags.target ?? io.environment['ZABRA_BACKUP_TARGET']
  if (!named)
    throw new UsageError(
      'Expected the target of the backups, got none. Name it with --target or ZABRA_BACKUP_TARGET.',
    )
  const key = flags.keyFile ?? io.environment['ZABRA_BACKUP_KEY_FILE']
  const { disk, random } = io.platform
  const platform = { disk, random, clock: keepAliveNodeClock, cryptography: nodeCryptography }
  const absolute = /^[a-z][\w+.-]+:/i.test(named) ? named : resolve(named)
  return {
    target: await openTarget(absolute, platform, await s3Access(io, flags, named)).catch(asUsageError),
    cryptography: nodeCryptography,
    random,
    key: key ? parseKey(new TextDecoder().decode(await readFileArg(key)), nodeCryptography, key) : undefined,
  }
}

function asUsageError(error: unknown): never {
  throw error instanceof BackupError ? new UsageError(error.message) : error
}

/** Returns how S3 is reached by flags and the variables that Amazon's tools read. */
async function s3Access({ environment }: Io, flags: StoreFlags, target: string): Promise<S3Access> {
  const region = flags.s3Region ?? environment['AWS_REGION'] ?? environment['AWS_DEFAULT_REGION']
  const endpoint = flags.s3Endpoint ?? environment['AWS_ENDPOINT_URL_S3'] ?? environment['AWS_ENDPOINT_URL']
  // Missing ones are reported before the first request.
  const credentials = /^s3:/i.test(target)
    ? Promise.resolve(await readCredentials(environment))
    : NO_CREDENTIALS
  return {
    region: region || 'us-east-1',
    endpoint: endpoint || undefined,
    credentials: () => credentials,
  }
}

const NO_CREDENTIALS = Promise.resolve({ accessKeyId: '', secretAccessKey: '' })

async function readCredentials(environment: Io['environment']): Promise<S3Credentials> {
  const accessKeyId = environment['AWS_ACCESS_KEY_ID']
  const secretAccessKey = environment['AWS_SECRET_ACCESS_KEY']
  if (accessKeyId && secretAccessKey)
    return { accessKeyId, secretAccessKey, sessionToken: environment['AWS_SESSION_TOKEN'] || undefined }
  const file = environment['AWS_SHARED_CREDENTIALS_FILE']
  if (file) return parseCredentials(new TextDecoder().decode(await readFileArg(file)), file)
  throw new UsageError(
    'Expected credentials for S3, got none. Set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or AWS_SHARED_CREDENTIALS_FILE.',
  )
}

/** The backup of a moment: a snapshot, the log after it, and the last transaction of that moment. */
export interface Moment {
  readonly catalog: Catalog
  readonly chain: BackupChain
  readonly upTo: number
}

/** Finds the backup of a moment; of the last one without flags. */
export async function findMoment(store: BackupStore, { at, zxid, before }: MomentFlags): Promise<Moment> {
  const catalog = await Catalog.read(store)
  const upTo = await lastTransaction()
  if (upTo !== undefined) return { catalog, chain: catalog.chainTo(upTo), upTo }
  const chain = catalog.newestChain()
  return { catalog, chain, upTo: Math.max(chain.upTo, chain.snapshot.exactAt) }

  async function lastTransaction(): Promise<number | undefined> {
    if (at !== undefined) return lastBefore(store, catalog, at)
    if (before === undefined) return zxid
    return (await lastBeforeChange(store, catalog, parseChange(before))).before
  }
}

export function zxidArgument(text: string): number {
  const zxid = Number.parseInt(text, 16)
  if (!/^(0x)?[0-9a-f]{1,14}$/i.test(text) || !Number.isSafeInteger(zxid))
    throw new InvalidArgumentError('Expected a zxid in hexadecimal, such as 0x100000001.')
  return zxid
}

/** Parses a time. Throws an `InvalidArgumentError` for anything else. */
export function timeArgument(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time) || !/^\d{4}-\d\d-\d\d/.test(text))
    throw new InvalidArgumentError('Expected a time such as 2026-11-23T01:00:00Z.')
  return time
}

/**
 * Returns the pauses of a command that loads a backup, which rejects with a `Failure` before the memory of the process is full: a small
 * compressed file may hold a very large tree.
 */
export const loadingPause = ({ platform: { system }, signal }: Io): ReturnType<typeof pauseAfter> => {
  const checkMemory = memoryCheck(
    { clock: keepAliveNodeClock, system },
    () => new Failure(TOO_LARGE, ExitCode.unexpected),
  )
  return pauseAfter(keepAliveNodeClock, SLICE_MS, () => {
    signal.throwIfAborted()
    checkMemory()
  })
}

const TOO_LARGE =
  'Expected a backup that fits into the memory of this process, got a larger one. Raise its limit with NODE_OPTIONS=--max-old-space-size=MEBIBYTES, or use a machine with more memory.'
