/** What is wrong, how it was seen, and what to do. `id` is its anchor in docs/doctor.md. */
export interface Finding {
  readonly id: string
  readonly severity: 'warning' | 'error'
  /** What was looked at: a file, a folder, a host, a server. */
  readonly where: string
  readonly evidence: string
  readonly remedy: string
}

/** Returns a finding that needs attention and stops nothing. */
export const warning = (id: string, where: string, evidence: string, remedy: string): Finding => ({
  id,
  severity: 'warning',
  where,
  evidence,
  remedy,
})

/** Returns a finding with which a server does not start, or data are at risk. */
export const error = (id: string, where: string, evidence: string, remedy: string): Finding => ({
  ...warning(id, where, evidence, remedy),
  severity: 'error',
})
