import { finding, type Finding } from './finding.ts'

/** Checks how many voters there are, and on how many hosts. A host is undefined where it is not known. */
export function* checkVoters(where: string, hosts: readonly (string | undefined)[]): Generator<Finding> {
  const { length } = hosts
  if (length > 0 && length % 2 === 0)
    yield finding(
      'even-voters',
      where,
      `${length} voters survive no more failures than ${length - 1}`,
      'Add a voter, or make one an observer.',
    )
  const [host, ...others] = new Set(hosts)
  if (length > 1 && host !== undefined && others.length === 0)
    yield finding(
      'one-host',
      where,
      `all ${length} voters are on ${host}`,
      'Put each voter on a machine of its own: this one is a single point of failure.',
    )
}
