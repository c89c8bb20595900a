import { Option, type Command } from 'commander'
import { resolve } from 'node:path'
import { fileURLToPath } from 'node:url'
import { nodeCryptography } from '@zabra/runtime/node'
import {
  Catalog,
  FolderTarget,
  lastBefore,
  lastBeforeChange,
  parseChange,
  parseKey,
  type BackupChain,
  type BackupStore,
} from '@zabra/server/backup'
import { InvalidArgumentError } from 'commander'
import { readFileArg } from '../arguments.ts'
import { UsageError } from '../exit-codes.ts'
import type { Io } from '../io.ts'

/** Options of commands that use a target of backups. */
export interface StoreFlags {
  readonly target?: string
  readonly keyFile?: string
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
      '--target <folder>',
      'where the backups are: a folder, or file:///folder (else ZABRA_BACKUP_TARGET)',
    )
    .option(
      '--key-file <file>',
      'the key of encrypted backups: 64 hexadecimal digits (else ZABRA_BACKUP_KEY_FILE)',
    )
}

/** Adds the options of `MomentFlags` to a command. */
export function withMomentOptions(command: Command): Command {
  return command
    .addOption(
      new Option('--at <time>', 'the state at a time, such as 2026-11-23T01:00:00Z')
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

/** Opens the target of backups. Rejects with a `UsageError` when none is named, or its key cannot be read. */
export async function openStore(io: Io, { target, keyFile }: StoreFlags): Promise<BackupStore> {
  const named = target ?? io.environment['ZABRA_BACKUP_TARGET']
  if (!named)
    throw new UsageError(
      'Expected the folder of the backups, got none. Name it with --target or ZABRA_BACKUP_TARGET.',
    )
  const key = keyFile ?? io.environment['ZABRA_BACKUP_KEY_FILE']
  return {
    target: new FolderTarget(io.platform.disk, folderOf(named)),
    cryptography: nodeCryptography,
    random: io.platform.random,
    key: key ? parseKey(new TextDecoder().decode(await readFileArg(key)), nodeCryptography, key) : undefined,
  }
}

function folderOf(target: string): string {
  const [, scheme] = /^([a-z][\w+.-]*):\/\//i.exec(target) ?? []
  if (scheme === undefined) return resolve(target)
  if (scheme.toLowerCase() !== 'file')
    throw new UsageError(
      `Expected a folder or file:///folder in --target, got ${target}: other stores are not supported. Mount it as a folder, or copy the folder of the backups there.`,
    )
  try {
    return fileURLToPath(target)
  } catch {
    throw new UsageError(`Expected a folder as file:///folder in --target, got ${target}.`)
  }
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

function timeArgument(text: string): number {
  const time = Date.parse(text)
  if (Number.isNaN(time) || !/^\d{4}-\d\d-\d\d/.test(text))
    throw new InvalidArgumentError('Expected a time such as 2026-11-23T01:00:00Z.')
  return time
}
