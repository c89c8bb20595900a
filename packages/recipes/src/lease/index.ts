export { lease, type Lease, type LeaseOptions } from './lease.ts'
