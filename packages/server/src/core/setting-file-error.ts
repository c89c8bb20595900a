import { DiskError } from '@zabra/runtime'

/** Reports that a file cannot be used which a setting names, by the key of the setting. The cause says why. */
export class SettingFileError extends Error {
  override readonly name = 'SettingFileError'

  constructor(key: string, cause: unknown) {
    const text = (cause instanceof Error ? cause.message : String(cause)).replace(/\.$/, '')
    const advice = cause instanceof DiskError ? ' Check the path and its permissions.' : ''
    super(`${key}: ${text}.${advice}`, { cause })
  }
}

/** Uses a file that a setting names. Rejects with a `SettingFileError` where that fails. */
export async function useSettingFile<T>(key: string, use: () => Promise<T>): Promise<T> {
  try {
    return await use()
  } catch (error) {
    throw new SettingFileError(key, error)
  }
}
