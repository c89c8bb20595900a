import type { Clock, Cryptography, Disk, Random } from '@zabra/runtime'
import { hideSecrets } from '../core/hide-secrets.ts'
import { BackupError } from './errors.ts'
import type { S3Credentials } from './s3-target.ts'
import { FolderTarget, type BackupTarget } from './target.ts'

/** How a store with the interface of S3 is reached. */
export interface S3Access {
  /** The URL of a store beside Amazon's. */
  readonly endpoint: string | undefined
  readonly region: string
  readonly credentials: () => Promise<S3Credentials>
}

export interface TargetPlatform {
  readonly disk: Disk
  readonly random: Random
  readonly cryptography: Cryptography
  readonly clock: Pick<Clock, 'after' | 'wall'>
}

/** Returns whether a text names a target that is no folder. */
export const isRemoteTarget = (text: string): boolean =>
  /^[a-z][\w+.-]*:/i.test(text) && !/^file:/i.test(text)

/** What a text names: a folder, or a place in a store with the interface of S3. */
type TargetName = { readonly path: string } | { readonly bucket: string; readonly prefix: string }

/** Parses a target: an absolute path, `file:///folder` or `s3://bucket/prefix`. Throws a `BackupError` for any other text. */
export function parseTarget(text: string): TargetName {
  const [, bucket, prefix = ''] =
    /^s3:\/\/([a-z\d][a-z\d.-]{1,61}[a-z\d])(?:\/([\w!.*'()/-]*))?$/.exec(text) ?? []
  if (bucket !== undefined) return { bucket, prefix: prefix.replaceAll(/^\/+|\/+$/g, '') }
  const path = pathOf(text)
  if (path !== undefined) return { path }
  throw new BackupError(
    `Expected an absolute folder, file:///folder or s3://bucket/prefix as the target of backups, got ${hideSecrets(text)}.`,
  )
}

/** Opens a target. Rejects with a `BackupError` for a text that names none. */
export async function openTarget(
  text: string,
  { disk, random, cryptography, clock }: TargetPlatform,
  s3: S3Access,
): Promise<BackupTarget> {
  const name = parseTarget(text)
  if ('path' in name) return new FolderTarget(name.path, { disk, random })
  // Loaded where it is configured only.
  const { S3Target } = await import('./s3-target.ts')
  return new S3Target({ ...s3, ...name, cryptography, clock })
}

function pathOf(text: string): string | undefined {
  if (text.startsWith('/') || /^[a-z]:[\\/]/i.test(text)) return text
  if (!/^file:\/\/\//i.test(text)) return undefined
  try {
    return decodeURIComponent(new URL(text).pathname)
  } catch {
    return undefined
  }
}

/** Reads the credentials of a file in the form of Amazon's tools, from its section `default`. Throws a `BackupError` that repeats nothing of it. */
export function parseCredentials(text: string, file: string): S3Credentials {
  const values = new Map<string, string>()
  let section = 'default'
  for (const line of text.split('\n')) {
    section = /^\s*\[\s*(.*?)\s*\]/.exec(line)?.[1] ?? section
    const [, name, value] = /^\s*(\w+)\s*=\s*(\S+)\s*$/.exec(line) ?? []
    if (section === 'default' && name !== undefined) values.set(name, value!)
  }
  const accessKeyId = values.get('aws_access_key_id')
  const secretAccessKey = values.get('aws_secret_access_key')
  if (accessKeyId !== undefined && secretAccessKey !== undefined)
    return { accessKeyId, secretAccessKey, sessionToken: values.get('aws_session_token') }
  throw new BackupError(
    `Expected aws_access_key_id = … and aws_secret_access_key = … in ${file}, got something else. Write both into its section [default].`,
  )
}
