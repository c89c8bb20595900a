import type { ServerSettings, SettingName } from './table.ts'

/** Returns the problems of the audit log's settings. Each text completes a sentence that begins with the setting. */
export function auditProblems({
  auditChain,
  auditFormat,
  auditFile,
}: ServerSettings): readonly { readonly name: SettingName; readonly text: string }[] {
  if (!auditChain) return []
  if (auditFormat !== 'json')
    return [
      {
        name: 'auditChain',
        text: `needs audit.format=json: a line of Apache ZooKeeper has no place for a hash, and audit.format is ${auditFormat}. Set it, or audit.chain=false`,
      },
    ]
  if (auditFile === undefined)
    return [
      {
        name: 'auditChain',
        text: 'needs audit.file: lines that go to the log of the server are not linked. Set it, or audit.chain=false',
      },
    ]
  return []
}
