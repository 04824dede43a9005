export async function run() {
  return { reward: 1 };
}
