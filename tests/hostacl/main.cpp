// cases NAME runs one case.
#include "cases.h"

int main(int count, char** arguments)
{
    const auto found = Cases().find(count > 1 ? arguments[1] : "");
    if (found == Cases().end()) {
        std::printf("no such case\n");
        return 2;
    }
    found->second();
    return 0;
}
